% SPDX-License-Identifier: Apache-2.0
% Writes the files of Octave in this folder, run in it: octave make_data.m
X = [1 2 3; 4 5 6]; S = sparse([1 3 2], [1 2 4], [1.5 -2 3], 3, 5); E = zeros(0, 3); I = int32([1 -2; 3 4; 5 6]);
L = [true false; false true]; N = [NaN Inf -Inf NA]; P = eye(3)([2 3 1], :); D = [2 0; 0 3; 0 0]; D = diag([2 3], 3, 2);
R = 1:0.5:3; T = reshape(1:24, 2, 3, 4); b = true; s = 2.5; f = single([1.5 2.5]);
text = ["# name: evil"; "# type: real"]; cell = {1, {2}}; st.a = 1; st.b = {3}; z = [1+2i 3];
save("-text", "octave.txt");
save("-hdf5", "octave.h5", "X", "S", "E", "text");
save("-v4", "octave4.mat", "X", "S");
save("-v7", "octave7.mat", "X", "S", "E", "L");
