"""What report.html does in a browser: draw the figures, filter the table of requests. All text goes in as text."""

SCRIPT = r"""
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent);
  var media = function (query) { return window.matchMedia(query); };
  var colour = function (name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); };

  function dressed(figure, width) {
    var layout = JSON.parse(JSON.stringify(figure.layout));
    layout.font.color = colour("--ink");
    Object.keys(layout).forEach(function (key) {
      if (/^[xy]axis/.test(key)) {
        layout[key].gridcolor = colour("--line");
        layout[key].linecolor = colour("--line");
      }
    });
    (layout.annotations || []).forEach(function (a) {
      if (a.name === "heading") { a.bgcolor = colour("--card"); a.opacity = 0.9; }
    });
    if (width < 560) {
      layout.font.size = 10;
      layout.margin = {l: 36, r: 6, t: layout.margin.t, b: 56};
      layout.xaxis.title.font.size = 10;
      (layout.annotations || []).forEach(function (a) { a.font.size = 9; });
      if (layout.legend) { layout.legend.font = {size: 9}; layout.margin.t = 8; layout.height += 60; }
    }
    return layout;
  }

  var drawn = {};
  function draw(width) {
    ["timeline", "waterfall"].forEach(function (name) {
      var place = document.getElementById(name), figure = data[name];
      if (!place || !figure) { return; }
      drawn[name] = place.clientWidth;
      var layout = dressed(figure, width || place.clientWidth);
      layout.width = width || place.clientWidth;
      Plotly.react(place, JSON.parse(JSON.stringify(figure.data)), layout,
        {displaylogo: false, displayModeBar: false, doubleClick: "reset"});
    });
  }

  loadPlotly().then(function () {
    draw();
    document.documentElement.setAttribute("data-drawn", "yes");
    media("(prefers-color-scheme: dark)").addEventListener("change", function () { draw(); });
    new ResizeObserver(function () {
      if (["timeline", "waterfall"].some(function (name) {
        var place = document.getElementById(name);
        return place && drawn[name] !== undefined && drawn[name] !== place.clientWidth;
      })) { requestAnimationFrame(function () { draw(); }); }
    }).observe(document.querySelector("main"));
    window.addEventListener("beforeprint", function () { draw(680); });
    window.addEventListener("afterprint", function () { draw(); });
  }).catch(function (error) {
    document.querySelectorAll(".plot").forEach(function (place) {
      place.className = "";
      place.textContent = "This browser cannot draw it (" + error + "); the figures are in the tables.";
    });
  });

  var SHOWN = 200, TROUBLE = 10, PHASE = 2, OUTCOME = 3;
  var table = document.getElementById("requests"), form = document.getElementById("filters");
  var rows = data.streams.rows, order = null, backwards = false;

  function options(select, column) {
    Array.from(new Set(rows.map(function (row) { return row[column]; }))).sort().forEach(function (value) {
      var option = document.createElement("option");
      option.value = option.textContent = value;
      select.appendChild(option);
    });
  }

  function matching() {
    var wanted = Number(form.trouble.value), words = form.words.value.toLowerCase();
    var found = rows.filter(function (row) {
      return row[TROUBLE] >= wanted && (!form.outcome.value || row[OUTCOME] === form.outcome.value) &&
        (!form.phase.value || row[PHASE] === form.phase.value) &&
        (!words || row.slice(0, TROUBLE).join(" ").toLowerCase().indexOf(words) >= 0);
    });
    if (order !== null) {
      found.sort(function (a, b) {
        var x = a[order], y = b[order];
        if (x === y) { return 0; }
        if (x === null || y === null) { return x === null ? 1 : -1; }
        return (x < y ? -1 : 1) * (backwards ? -1 : 1);
      });
    }
    return found;
  }

  function show() {
    var found = matching(), body = table.tBodies[0];
    body.textContent = "";
    found.slice(0, SHOWN).forEach(function (row) {
      var line = body.insertRow();
      row.slice(0, TROUBLE).forEach(function (value, column) {
        var cell = line.insertCell();
        cell.textContent = value === null || value === "" ? "\u2013" : value;
        if (value === null || value === "") { cell.className = "none"; }
        if (column === OUTCOME && row[TROUBLE] === 2) { cell.className = "fail"; }
        if (String(value).length > 32) { cell.className += " long"; }
      });
    });
    document.getElementById("matches").textContent = found.length + " of " + rows.length +
      (found.length > SHOWN ? ", the first " + SHOWN + " shown" : "") +
      (data.streams.of > rows.length ? " (a sample of " + data.streams.of + " requests)" : "");
  }

  if (rows.length) {
    var head = table.tHead || table.createTHead();
    head.textContent = "";
    var titles = head.insertRow();
    data.streams.columns.forEach(function (title, column) {
      var cell = document.createElement("th"), button = document.createElement("button");
      button.type = "button";
      button.textContent = title;
      button.addEventListener("click", function () {
        backwards = order === column && !backwards;
        order = column;
        titles.querySelectorAll("th").forEach(function (th) { th.removeAttribute("aria-sort"); });
        cell.setAttribute("aria-sort", backwards ? "descending" : "ascending");
        show();
      });
      cell.appendChild(button);
      titles.appendChild(cell);
    });
    options(form.outcome, OUTCOME);
    options(form.phase, PHASE);
    form.hidden = false;
    form.addEventListener("input", show);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    if (rows.some(function (row) { return row[TROUBLE] > 0; })) { form.trouble.value = "1"; }
    show();
  }
})();
"""
