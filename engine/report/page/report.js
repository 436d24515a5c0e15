// SPDX-License-Identifier: Apache-2.0
// Draws the two charts of a report from the data in the page; without it the page has tables in their place.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // While the page is printed: white whatever the screen is, and as wide as paper.
  let isPrinted = false;
  const onPaper = { "--soft": "#444", "--line": "#bbb" }, widthOfPaper = 680;
  const color = (name) => isPrinted ? onPaper[name] : getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const kinds = { operator: "#d98032", copy: "#7a5fc0", planning: "#4b9a5b", call: "#7d8891", loop: "#a9b1b8" };
  const seconds = (s) => s >= 1 ? s.toPrecision(3) + " s" : s >= 1e-3 ? (s * 1e3).toPrecision(3) + " ms"
    : (s * 1e6).toPrecision(3) + " us";
  const bytes = (b) => b >= 1e9 ? (b / 1e9).toPrecision(3) + " GB" : b >= 1e6 ? (b / 1e6).toPrecision(3) + " MB"
    : b >= 1e3 ? (b / 1e3).toPrecision(3) + " kB" : b + " bytes";

  // A row for each thread: events from their differences, with how deep each is inside of others.
  const rows = [];
  for (const rank of data.ranks)
    for (const thread of rank.threads) {
      const n = thread.b.length, begin = new Float64Array(n), end = new Float64Array(n), depth = new Uint8Array(n);
      const open = [];
      let at = 0, most = 0;
      for (let i = 0; i < n; i++) {
        at += thread.b[i];
        begin[i] = at / 1e6;
        end[i] = begin[i] + thread.d[i] / 1e6;
        // Copies are on their way at once, and not inside of each other.
        if (rank.sites[thread.s[i]][1] !== "copy") {
          while (open.length > 0 && open[open.length - 1] <= begin[i] + 1.1e-6) open.pop();
          depth[i] = Math.min(open.length, 7);
          open.push(end[i]);
        }
        most = Math.max(most, depth[i]);
      }
      rows.push({ name: (data.ranks.length > 1 ? rank.rank + " " : "") + thread.name, sites: rank.sites, site: thread.s,
        made: thread.n, begin, end, depth, depths: most + 1, n });
    }

  const rowHeight = Math.max(26, ...rows.map((row) => row.depths * 9 + 8));
  const widthOf = (element) => isPrinted ? widthOfPaper : Math.max(280, Math.floor(element.clientWidth));
  const axis = () => ({ stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1 }, font: "12px system-ui, sans-serif" });

  function timeline(element, hint) {
    const height = rows.length * rowHeight;
    const end = Math.max(data.elapsed, 1e-6);
    // Events are sorted by their beginning, so those outside of what is shown are left out quickly; of those that
    // are narrower than a point all in one point are drawn once.
    const draw = (u) => {
      const { ctx, bbox } = u, scale = devicePixelRatio || 1;
      const from = u.scales.x.min, to = u.scales.x.max, perSecond = bbox.width / (to - from);
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      rows.forEach((row, number) => {
        const top = bbox.top + bbox.height * number / rows.length, full = bbox.height / rows.length - 4 * scale;
        const drawn = new Int32Array(row.depths).fill(-1);
        for (let i = 0; i < row.n; i++) {
          if (row.begin[i] > to) break;
          if (row.end[i] < from) continue;
          const x = Math.floor(Math.max(0, (row.begin[i] - from) * perSecond));
          const width = Math.max(1, Math.floor((row.end[i] - from) * perSecond) - x), depth = row.depth[i];
          if (width <= 1 && drawn[depth] === x) continue;
          drawn[depth] = x + width - 1;
          ctx.fillStyle = kinds[row.sites[row.site[i]][1]];
          const step = full / row.depths;
          ctx.fillRect(bbox.left + x, top + 2 * scale + depth * step, Math.min(width, bbox.width - x), Math.max(1, step - 1));
        }
      });
      ctx.restore();
    };
    const names = () => ({ ...axis(), size: 78, gap: 6, splits: () => rows.map((_, i) => rows.length - i - .5),
      values: () => rows.map((row) => row.name.length > 10 ? row.name.slice(0, 9) + "\u2026" : row.name),
      grid: { show: false }, ticks: { show: false } });
    const under = (u) => {
      const { left, top } = u.cursor;
      if (left == null || left < 0) return;
      const number = Math.floor(top / (u.over.clientHeight / rows.length)), row = rows[number], at = u.posToVal(left, "x");
      if (!row) return;
      const near = (u.scales.x.max - u.scales.x.min) / u.over.clientWidth;
      const level = (top - number * u.over.clientHeight / rows.length - 2) / (u.over.clientHeight / rows.length - 4) * row.depths;
      let found = -1;
      for (let i = 0; i < row.n && row.begin[i] <= at + near; i++)
        if (row.end[i] >= at - near && (found < 0 || Math.abs(row.depth[i] + .5 - level) <= Math.abs(row.depth[found] + .5 - level)))
          found = i;
      if (found < 0) { hint.textContent = "at " + seconds(at); return; }
      const [name, kind, place] = row.sites[row.site[found]], made = row.made[found];
      hint.textContent = kind + " " + name + (place ? " at " + place : "") + ": " + seconds(row.end[found] - row.begin[found]) +
        " from " + seconds(row.begin[found]) + (made > 0 ? (kind === "loop" ? ", " + made + " rounds" : ", " + made + " rows") : "");
    };
    return new uPlot({
      width: widthOf(element), height: height + 46, padding: [12, 8, 0, 0], legend: { show: false }, cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: { x: { time: false, range: (u, min, max) => min == null || min === max ? [0, end] : [min, max] }, y: { range: [0, rows.length] } },
      axes: [{ ...axis(), size: 34, values: (u, ticks) => ticks.map((t) => t === 0 ? "0" : seconds(t)) }, names()],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      hooks: { draw: [draw], setCursor: [under] },
    }, [[0, end], [null, null]], element);
  }

  function memory(element) {
    const times = [...new Set(data.ranks.flatMap((rank) => rank.memory ? rank.memory.t : []))].sort((a, b) => a - b);
    const lines = [], series = [{ label: "s", value: (u, v) => v == null ? "" : seconds(v) }];
    const palette = ["#0b7bc1", "#d98032", "#4b9a5b", "#7a5fc0", "#b0413e", "#6b7680", "#2f8f8f", "#a88f2c"];
    data.ranks.forEach((rank, i) => {
      if (!rank.memory) return;
      const at = new Map(rank.memory.t.map((t, j) => [t, rank.memory.b[j]]));
      let last = null;
      lines.push(times.map((t) => (last = at.has(t) ? at.get(t) : last)));
      series.push({ label: data.ranks.length > 1 ? "worker " + rank.rank : "held", stroke: palette[i % palette.length], width: 1.5,
        value: (u, v) => v == null ? "" : bytes(v) });
    });
    if (times.length === 0) return null;
    const limit = Math.max(...data.ranks.map((rank) => rank.limit || 0));
    const most = Math.max(...lines.map((line) => line.reduce((a, b) => Math.max(a, b || 0), 0)));
    // The promise is a line of its own where it is near enough to be seen beside what was held.
    if (limit > 0 && limit < 20 * most) {
      lines.push(times.map(() => limit));
      series.push({ label: "promised at most", stroke: "#b0413e", width: 1.5, dash: [6, 4], value: (u, v) => v == null ? "" : bytes(v) });
    }
    return new uPlot({
      width: widthOf(element), height: 200, legend: { show: series.length > 2 }, scales: { x: { time: false }, y: { range: (u, min, max) => [0, Math.max(max, 1) * 1.05] } },
      axes: [{ ...axis(), values: (u, ticks) => ticks.map((t) => t === 0 ? "0" : seconds(t)) },
        { ...axis(), size: 78, values: (u, ticks) => ticks.map((t) => t === 0 ? "0" : bytes(t)) }],
      series,
    }, [times, ...lines], element);
  }

  const places = [["timeline", timeline], ["memory", memory]];
  let charts = [];
  function show() {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    for (const [name, make] of places) {
      const element = document.getElementById(name);
      if (!element) continue;
      const chart = make(element, document.getElementById(name + "-hint"));
      if (chart) charts.push(chart);
    }
    for (const still of document.querySelectorAll(".still")) still.hidden = true;
    for (const live of document.querySelectorAll(".on-screen")) live.hidden = false;
  }
  const begin = performance.now();
  show();
  // The browser draws behind a script; who measures asks for this.
  requestAnimationFrame(() => setTimeout(() => { document.body.dataset.drawn = (performance.now() - begin).toFixed(0); }));
  let wait = 0;
  const again = () => { clearTimeout(wait); wait = setTimeout(show, 100); };
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; again(); } });
  dark.addEventListener("change", again);
  for (const [event, value] of [["beforeprint", true], ["afterprint", false]])
    addEventListener(event, () => { isPrinted = value; show(); });
})();
