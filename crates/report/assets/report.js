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
    var base = { stroke: colour("--soft"), font: "11px " + colour("--sans"), labelFont: "11px " + colour("--sans"), labelSize: 16, labelGap: 0, grid: { stroke: colour("--hair"), width: 1 }, ticks: { stroke: colour("--rule"), width: 1, size: 4 } };
    for (var key in more) { base[key] = more[key]; }
    return base;
  }

  var dashes = [[], [8, 3], [2, 3], [9, 3, 2, 3], [5, 2], [12, 4], [1, 2], [6, 2, 2, 2, 2, 2]];
  // The marker of a style around a point; those of the second half are open.
  function mark(ctx, style, x, y, r) {
    ctx.beginPath();
    if (style % 4 === 0) { ctx.arc(x, y, r, 0, 7); }
    else if (style % 4 === 1) { ctx.rect(x - r * .85, y - r * .85, r * 1.7, r * 1.7); }
    else if (style === 2) { ctx.moveTo(x, y - r); ctx.lineTo(x + r, y + r * .8); ctx.lineTo(x - r, y + r * .8); ctx.closePath(); }
    else if (style === 3) { ctx.moveTo(x, y - r * 1.2); ctx.lineTo(x + r * 1.2, y); ctx.lineTo(x, y + r * 1.2); ctx.lineTo(x - r * 1.2, y); ctx.closePath(); }
    else if (style === 6) { ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r); }
    else { ctx.moveTo(x, y - r * 1.2); ctx.lineTo(x, y + r * 1.2); ctx.moveTo(x - r * 1.2, y); ctx.lineTo(x + r * 1.2, y); }
    if (style < 6) { ctx.fill(); }
    ctx.stroke();
  }
  // A few markers on each line, at other places than those of the others.
  function drawMarkers(u, chart, every) {
    var ctx = u.ctx, ratio = uPlot.pxRatio;
    ctx.save();
    ctx.beginPath(); ctx.rect(u.bbox.left - 8, u.bbox.top - 8, u.bbox.width + 16, u.bbox.height + 16); ctx.clip();
    chart.lines.forEach(function (line, number) {
      var next = u.bbox.left + every * (number % 4) / 4 * ratio;
      ctx.strokeStyle = colour("--series-" + (line.style + 1)); ctx.lineWidth = 1.5 * ratio;
      ctx.fillStyle = line.style < 4 ? ctx.strokeStyle : colour("--paper");
      line.x.forEach(function (at, i) {
        if (line.y[i] == null) { return; }
        var x = u.valToPos(at, "x", true);
        if (x < next && line.x.length > (chart.across === "block" ? 40 : 3)) { return; }
        mark(ctx, line.style, x, u.valToPos(line.y[i], "y", true), 3 * ratio);
        next = x + every * ratio;
      });
    });
    ctx.restore();
  }

  function drawChart(box, chart) {
    var joined = uPlot.join(chart.lines.map(function (line) { return [line.x, line.y]; }));
    var top = 1, splits = [];
    if (chart.is_share) {
      chart.lines.forEach(function (line) { line.y.forEach(function (y) { top = Math.max(top, y); }); });
      top = Math.ceil(top * 10) / 10;
      for (var i = 0; i <= top; i++) { splits.push(i); }
    }
    var readout = document.getElementById(chart.anchor + "-readout");
    var words = chart.unit === "seconds" ? duration : count;
    function decades(u, splits) { return splits.map(function (v) { return v && /^1e/.test(v.toExponential(0)) ? duration(v) : ""; }); }
    // The value of a line at a place: of a distribution the share that was reached, of a series the nearest.
    function reached(line, at) { var best = 0; line.x.forEach(function (x, i) { if (x <= at) { best = line.y[i]; } }); return shareOf(best); }
    function nearest(line, at) {
      var best = null, far = Infinity;
      line.x.forEach(function (x, i) { if (line.y[i] != null && Math.abs(x - at) < far) { far = Math.abs(x - at); best = line.y[i]; } });
      return best == null ? "–" : words(best);
    }
    var shown = {
      width: box.clientWidth, height: chart.is_share ? 380 : 190, legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      series: [{}].concat(chart.lines.map(function (line) {
        return { label: line.name, stroke: colour("--series-" + (line.style + 1)), width: chart.is_share ? 2 : 1.6, dash: dashes[line.style], spanGaps: true, points: { show: false } };
      })),
      scales: { x: { time: false, distr: chart.is_share ? 3 : 1 }, y: { range: chart.is_share ? [0, top] : function (u, min, max) { return [0, max > 0 ? max * 1.12 : 1]; } } },
      axes: chart.is_share ?
        [axis({ values: decades, space: 28, size: 34, label: chart.across }),
         axis({ splits: function () { return splits; }, values: function (u, s) { return s.map(share); }, size: 62, label: chart.title })] :
        [axis({ values: function (u, s) { return s.map(function (v) { return chart.across !== "block" ? v + " s" : v % 1 ? "" : v; }); }, size: 26, space: 46, grid: { show: false }, label: chart.across }),
         axis({ values: function (u, s) { return s.map(words); }, size: 56, space: 28, label: chart.title })],
      hooks: {
        draw: [function (u) { drawMarkers(u, chart, chart.is_share ? 90 : 70); }],
        setCursor: [function (u) {
          var left = u.cursor.left;
          if (left == null || left < 0) { readout.textContent = ""; return; }
          var at = u.posToVal(left, "x");
          readout.textContent = (chart.is_share ? "within " + duration(at) : chart.across === "block" ? "block " + Math.round(at) : "at " + +at.toPrecision(4) + " s") + ": " +
            chart.lines.map(function (line) { return line.name + " " + (chart.is_share ? reached : nearest)(line, at); }).join(", ");
        }]
      }
    };
    charts.push(new uPlot(shown, joined, box));
  }

  function draw() {
    charts.forEach(function (chart) { chart.destroy(); });
    charts = [];
    data.forEach(function (chart) {
      var box = document.getElementById(chart.anchor);
      // A folded part has no width; it is drawn when it is opened.
      if (box && box.clientWidth > 0) { drawChart(box, chart); }
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

  // A box of the diagram opens its evidence, a rule its explanation; printing opens all of it.
  document.querySelectorAll(".path a, .verdict .id a").forEach(function (link) {
    link.addEventListener("click", function () { var box = document.getElementById(link.getAttribute("href").slice(1)); if (box) { box.open = true; } });
  });
  document.querySelectorAll("details").forEach(function (d) { if (d.querySelector(".chart")) { d.addEventListener("toggle", draw); } });
  // Paper is light.
  var opened = [], theme = null;
  window.addEventListener("beforeprint", function () { theme = root.getAttribute("data-theme"); root.setAttribute("data-theme", "light"); document.querySelectorAll("details:not([open])").forEach(function (d) { d.open = true; opened.push(d); }); draw(); });
  window.addEventListener("afterprint", function () { opened.forEach(function (d) { d.open = false; }); opened = []; if (theme) { root.setAttribute("data-theme", theme); } else { root.removeAttribute("data-theme"); } draw(); });

  name();
  draw();
  root.setAttribute("data-drawn", "");
})();
