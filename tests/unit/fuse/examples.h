// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/fuse/graph_maker.h"

// Five graphs whose candidates, plans and costs were worked out before this code was written; ids as there.
namespace heddle::compiler {

/// C = A + s*B; D = (C/2)^(C-1); E = exp(C-1)
inline Graph ExampleA() {
  GraphMaker make;
  const NodeId a = make.Matrix("A", 1'000'000, 100), b = make.Matrix("B", 1'000'000, 100),
               s = make.Scalar("s");
  const NodeId two = make.Literal(2.0), one = make.Literal(1.0);
  make.SkipTo(6);
  make.Add("*", {b, s});    // 6
  make.Add("+", {a, 6});    // 7
  make.Add("/", {7, two});  // 8
  make.Add("-", {7, one});  // 9
  make.Add("^", {8, 9});    // 10
  make.Add("exp", {9});     // 11
  make.Assign("D", 10);
  make.Assign("E", 11);
  return make.graph();
}

/// Q = P[,1:5]*(X%*%v); H = t(X) %*% (Q - P[,1:5]*rowSums(Q)). Node 10, the transpose, is part of 11 here.
inline Graph ExampleB() {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1'000'000, 100), v = make.Matrix("v", 100, 5),
               p = make.Matrix("P", 1'000'000, 6);
  const NodeId one = make.Literal(heddle::Scalar(1));
  NodeId five = make.Literal(heddle::Scalar(5));
  // Literals stand behind the inputs; the operators begin at 4 in the text, at 5 here, so five moves in front
  // of X.
  (void)five;
  make.SkipTo(5);
  make.Add("index", {p, kNoNode, kNoNode, one, five});  // 5
  make.Add("%*%", {x, v});                              // 6
  make.Add("*", {5, 6});                                // 7
  make.Add("rowSums", {7});                             // 8
  make.Add("*", {5, 8});                                // 9
  make.Add("-", {7, 9});                                // 10
  make.Add("t%*%", {x, 10});                            // 11
  make.Assign("H", 11);
  return make.graph();
}

/// T = asin(X); r = rowSums(T*Y); c = colSums(T*Z)
inline Graph ExampleC() {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1'000'000, 100), y = make.Matrix("Y", 1'000'000, 100),
               z = make.Matrix("Z", 1'000'000, 100);
  make.SkipTo(4);
  make.Add("asin", {x});     // 4
  make.Add("*", {4, y});     // 5
  make.Add("rowSums", {5});  // 6
  make.Add("*", {4, z});     // 7
  make.Add("colSums", {7});  // 8
  make.Assign("r", 6);
  make.Assign("c", 8);
  return make.graph();
}

/// L = sum(X*log(U%*%t(V)+eps)); G = (X*(U%*%t(V)))%*%V, where a rule made U%*%t(V) at the non-zeros of X one
/// operator.
inline Graph ExampleD() {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 100'000, 100'000, Format::kSparse), u = make.Matrix("U", 100'000, 20),
               v = make.Matrix("V", 100'000, 20);
  const NodeId epsilon = make.Literal(1e-15);
  make.SkipTo(6);
  make.Add("sampledProduct", {x, u, v});  // 6
  make.Add("+", {6, epsilon});            // 7
  make.Add("log", {7});                   // 8
  make.Add("*", {x, 8});                  // 9
  make.Add("sum", {9});                   // 10
  make.Add("*", {x, 6});                  // 11
  make.Add("%*%", {11, v});               // 12
  make.Assign("L", 10);
  make.Assign("G", 12);
  return make.graph();
}

/// a=exp(X); b=a+X; c=a*Y; d=b/c; e=asin(d); f=d^X; r=rowSums(e*f); s=colSums(e+Y)
inline Graph ExampleE() {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1'000'000, 100), y = make.Matrix("Y", 1'000'000, 100);
  make.SkipTo(3);
  make.Add("exp", {x});       // 3
  make.Add("+", {3, x});      // 4
  make.Add("*", {3, y});      // 5
  make.Add("/", {4, 5});      // 6
  make.Add("asin", {6});      // 7
  make.Add("^", {6, x});      // 8
  make.Add("*", {7, 8});      // 9
  make.Add("rowSums", {9});   // 10
  make.Add("+", {7, y});      // 11
  make.Add("colSums", {11});  // 12
  make.Assign("r", 10);
  make.Assign("s", 12);
  return make.graph();
}

/// T = f(X); R = T / colSums(T): R waits for the sums, so either both passes compute T, or one pass writes it
/// and adds it up and another one reads it.
inline Graph NormalizedColumns(const std::string& function) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1'000'000, 100);
  const NodeId three = function == "%%" ? make.Literal(3.0) : kNoNode;
  make.SkipTo(2);
  const NodeId shared =
      make.Add(function, function == "%%" ? std::vector<NodeId>{x, three} : std::vector<NodeId>{x});
  make.Assign("R", make.Add("/", {shared, make.Add("colSums", {shared})}));
  return make.graph();
}

}  // namespace heddle::compiler
