(function () {
  "use strict";
  var root = document.documentElement;
  var data = JSON.parse(document.getElementById("data").textContent);
  var charts = [];

  function colour(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }
  function isDark() { return getComputedStyle(root).colorScheme === "dark"; }

  // A duration in the unit that fits: three significant digits.
  function duration(seconds) {
    var units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
    for (var i = 0; i < units.length; i++) {
      if (seconds >= units[i][0] * 0.9995 || i === 3) { return +(seconds / units[i][0]).toPrecision(3) + " " + units[i][1]; }
    }
  }
  function count(value) { return value >= 1e6 ? +(value / 1e6).toPrecision(3) + " M" : value >= 1e3 ? +(value / 1e3).toPrecision(3) + " k" : String(+value.toPrecision(4)); }
  // The nines axis: 0 is 0%, 1 is 90%, 2 is 99%, 3 is 99.9%.
  function share(nines) { return nines <= 0 ? "0%" : nines === 1 ? "90%" : nines === 2 ? "99%" : "99." + "9".repeat(nines - 2) + "%"; }
  function shareOf(nines) { return (100 * (1 - Math.pow(10, -nines))).toFixed(Math.max(1, Math.ceil(nines) - 1)) + "%"; }

  function axis(more) {
    var base = { stroke: colour("--soft"), font: "11px " + colour("--sans"), grid: { stroke: colour("--hair"), width: 1 }, ticks: { stroke: colour("--rule"), width: 1, size: 4 } };
    for (var key in more) { base[key] = more[key]; }
    return base;
  }

  function drawCdf(box) {
    if (!data.cdf.length) { return; }
    var tables = data.cdf.map(function (line) { return [line.x, line.y]; });
    var joined = uPlot.join(tables);
    var top = 1;
    data.cdf.forEach(function (line) { line.y.forEach(function (y) { top = Math.max(top, y); }); });
    top = Math.ceil(top * 10) / 10;
    var splits = []; for (var i = 0; i <= top; i++) { splits.push(i); }
    var dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [1, 2]];
    var readout = document.getElementById("cdf-readout");
    var series = [{}].concat(data.cdf.map(function (line, i) {
      return { label: line.name, stroke: colour(line.colour), width: 2, dash: dashes[i % dashes.length], spanGaps: true, points: { show: false } };
    }));
    charts.push(new uPlot({
      width: box.clientWidth, height: 380, series: series, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, distr: 3 }, y: { range: [0, top] } },
      axes: [
        axis({ values: function (u, splits) { return splits.map(function (v) { return v && /^1e/.test(v.toExponential(0)) ? duration(v) : ""; }); }, space: 28, size: 34 }),
        axis({ splits: function () { return splits; }, values: function (u, s) { return s.map(share); }, size: 62 })
      ],
      hooks: { setCursor: [function (u) {
        var left = u.cursor.left;
        if (left == null || left < 0) { readout.textContent = ""; return; }
        var at = u.posToVal(left, "x");
        readout.textContent = "within " + duration(at) + ": " + data.cdf.map(function (line) {
          var y = 0; for (var i = 0; i < line.x.length && line.x[i] <= at; i++) { y = line.y[i]; }
          return line.name + " " + (at >= line.x[line.x.length - 1] ? "all" : shareOf(y));
        }).join(", ");
      }] }
    }, joined, box));
  }

  function drawSeries(box, phase) {
    var line = colour("--series-1");
    var lines = [{}, { stroke: line, width: 1.5, fill: phase.high.length ? undefined : colour("--info-wash"), points: { show: phase.x.length < 3 } }];
    var table = [phase.x, phase.y];
    if (phase.high.length) { lines.push({ stroke: colour("--series-2"), width: 1.2, dash: [4, 3], points: { show: phase.x.length < 3 } }); table.push(phase.high); }
    var words = phase.unit === "seconds" ? duration : count;
    charts.push(new uPlot({
      width: box.clientWidth, height: 118, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
      series: lines,
      scales: { x: { time: false }, y: { range: function (u, min, max) { return [0, max > 0 ? max * 1.12 : 1]; } } },
      axes: [axis({ values: function (u, s) { return s.map(function (v) { return v + " s"; }); }, size: 26, space: 46, grid: { show: false } }),
             axis({ values: function (u, s) { return s.map(words); }, size: 52, space: 28 })]
    }, table, box));
  }

  function draw() {
    charts.forEach(function (chart) { chart.destroy(); });
    charts = [];
    var cdf = document.getElementById("cdf");
    if (cdf) { drawCdf(cdf); }
    data.series.forEach(function (phase) {
      var box = document.getElementById(phase.anchor);
      if (box && phase.x.length) { drawSeries(box, phase); }
    });
  }

  var button = document.getElementById("theme");
  function name() { button.textContent = isDark() ? "light" : "dark"; }
  button.hidden = false;
  button.addEventListener("click", function () { root.setAttribute("data-theme", isDark() ? "light" : "dark"); name(); draw(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { name(); draw(); });

  var width = root.clientWidth, pending = 0;
  window.addEventListener("resize", function () {
    if (root.clientWidth === width) { return; }
    width = root.clientWidth;
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(draw);
  });

  // A box of the diagram opens its evidence; printing opens all of it.
  document.querySelectorAll(".path a").forEach(function (link) {
    link.addEventListener("click", function () { var box = document.getElementById(link.getAttribute("href").slice(1)); if (box) { box.open = true; } });
  });
  // Paper is light.
  var opened = [], theme = null;
  window.addEventListener("beforeprint", function () { theme = root.getAttribute("data-theme"); root.setAttribute("data-theme", "light"); draw(); document.querySelectorAll("details:not([open])").forEach(function (d) { d.open = true; opened.push(d); }); });
  window.addEventListener("afterprint", function () { opened.forEach(function (d) { d.open = false; }); opened = []; if (theme) { root.setAttribute("data-theme", theme); } else { root.removeAttribute("data-theme"); } draw(); });

  name();
  draw();
  document.title = document.title + " · ready";
})();
