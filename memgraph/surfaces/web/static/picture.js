// Draws the data of a page that `memgraph graph` or `memgraph timeline` wrote.
// Everything that comes from a memory is set as text, never as markup.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("picture-data").textContent);
  const frame = document.getElementById("picture");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const STATUS_COLORS = { active: "--good", superseded: "--warn", retracted: "--bad" };
  const FEW = 30; // memories: so few have room for their whole labels
  const ROOM = 1.4; // for labels of edges
  const NEAREST = 1.6; // the zoom at which a whole drawing is shown
  const HEIGHT = 380; // of a chart
  const DATE_WIDTH = 110;

  const { colour: color } = memgraphShared;

  // ── graph ───────────────────────────────────────────────────────────────────────────────────

  const labelled = data.kind === "graph" && data.edges.length <= 2 * FEW;

  function graphStyle() {
    return [
      ...memgraphGraphStyle.of(data.types),
      {
        selector: "edge",
        style: {
          label: labelled ? "data(label)" : "",
          color: color("--dim"),
          "font-size": 11,
          "min-zoomed-font-size": 6,
          "text-rotation": "autorotate",
          "text-outline-color": color("--graph-paper"),
          "text-outline-width": 2,
          "curve-style": "bezier",
          "control-point-step-size": 60,
        },
      },
      { selector: "node.roomy", style: { "font-size": 14, "text-max-width": 150 } },
      { selector: "node[?seed]", style: { "border-width": 3 } },
    ];
  }

  function drawGraph() {
    const ids = data.nodes.map((node) => node.id);
    const room = labelled ? ROOM : 1;
    const places = memgraphLayout.place(ids, data.edges.map((edge) => [edge.source, edge.target]));
    const wide = ({ x, y }) => ({ x: x * room, y: y * room });
    const cy = cytoscape({
      container: frame,
      minZoom: 0.05,
      maxZoom: 4,
      boxSelectionEnabled: false,
      layout: { name: "preset" },
      elements: [
        ...data.nodes.map((node) => ({
          group: "nodes",
          data: node,
          position: wide(places.get(node.id)),
          classes: ids.length <= FEW ? "roomy" : "",
        })),
        ...data.edges.map((edge) => ({ group: "edges", data: edge })),
      ],
      style: graphStyle(),
    });
    cy.nodes().forEach((node) => node.data("ties", node.degree(false)));
    cy.fit(undefined, 40);
    if (cy.zoom() > NEAREST) {
      cy.zoom(NEAREST);
      cy.center();
    }
    cy.on("select", "node", (event) => describe(event.target.data()));
    dark.addEventListener("change", () => cy.style(graphStyle()));
    frame.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      if (!steps[event.key]) return;
      event.preventDefault();
      const [x, y] = steps[event.key];
      cy.panBy({ x, y });
    });
    window.memgraphPicture = cy; // for tests and a browser's console
  }

  function describe(node) {
    const list = document.createElement("dl");
    list.className = "facts";
    const fields = {
      Type: `${node.type}, ${node.kind}`,
      Status: node.status,
      Confidence: node.confidence.toFixed(2),
      Stored: node.created_at,
      Id: node.id,
    };
    for (const [name, value] of Object.entries(fields)) {
      const [term, text] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      text.textContent = value;
      list.append(term, text);
    }
    const content = document.createElement("p");
    content.className = "content";
    content.textContent = node.summary;
    document.getElementById("selected").replaceChildren(content, list);
  }

  // ── charts ──────────────────────────────────────────────────────────────────────────────────

  function axis() {
    const line = { stroke: color("--line"), width: 1 };
    return { stroke: color("--dim"), grid: line, ticks: line };
  }

  const tzDate = (at) => uPlot.tzDate(new Date(at * 1e3), "UTC");
  const number = (_plot, value) => (value == null ? "–" : value.toFixed(2));

  function confidenceChart() {
    const fill = (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.globalAlpha = 0.12;
      for (const [status, since, until] of data.spans) {
        const left = Math.max(plot.valToPos(since / 1e3, "x", true), bbox.left);
        const right = Math.min(plot.valToPos(until / 1e3, "x", true), bbox.left + bbox.width);
        ctx.fillStyle = color(STATUS_COLORS[status]);
        ctx.fillRect(left, bbox.top, Math.max(right - left, 0), bbox.height);
      }
      ctx.restore();
    };
    return [
      {
        tzDate,
        hooks: { drawClear: [fill] },
        axes: [axis(), { ...axis(), label: "confidence", stroke: color("--dim") }],
        scales: { y: { range: [0, 1.05] } },
        series: [
          { label: "time (UTC)" },
          { label: "stored", stroke: color("--dim"), width: 2, dash: [6, 4], value: number },
          { label: "effective", stroke: color("--main"), width: 2.5, value: number },
        ],
      },
      data.columns,
    ];
  }

  function bulletinsChart() {
    const [kept, added, removed] = data.counts;
    const bars = uPlot.paths.bars({ size: [0.6, 60] });
    const bar = (label, name, counts) => ({
      label,
      stroke: color(name),
      fill: color(name),
      width: 0,
      paths: bars,
      points: { show: false },
      value: (_plot, _value, _series, at) => (at == null ? "–" : String(counts[at])),
    });
    const most = Math.max(1, ...kept.map((count, at) => count + added[at]));
    const least = Math.min(0, ...removed.map((count) => -count));
    return [
      {
        axes: [
          {
            ...axis(),
            grid: { show: false },
            splits: (plot) => {
              const step = Math.ceil((data.times.length * DATE_WIDTH) / Math.max(plot.width, 1));
              return data.times.map((_time, at) => at).filter((at) => at % step === 0);
            },
            values: (_plot, places) => places.map((at) => data.times[at].slice(0, 10)),
          },
          { ...axis(), label: "memories", incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
        ],
        scales: {
          x: { time: false, range: () => [-0.6, Math.max(data.times.length, 1) - 0.4] },
          y: { range: () => [least * 1.1, most * 1.1] },
        },
        series: [
          {
            label: "first handed out",
            value: (_plot, _value, _series, at) => (at == null ? "–" : data.times[at]),
          },
          bar("added", "--good", added), // up to its sum; what was kept is drawn over it
          bar("kept", "--graph-type-1", kept),
          bar("left out", "--bad", removed),
        ],
      },
      [
        data.times.map((_time, at) => at),
        kept.map((count, at) => count + added[at]),
        kept,
        removed.map((count) => -count),
      ],
    ];
  }

  function drawChart(make) {
    const size = () => ({ width: Math.max(frame.clientWidth - 24, 240), height: HEIGHT });
    let plot = null;
    const draw = () => {
      plot?.destroy();
      const [options, columns] = make();
      plot = new uPlot({ ...size(), ...options }, columns, frame);
    };
    for (const mark of document.querySelectorAll("[data-status]")) {
      mark.style.background = `var(${STATUS_COLORS[mark.dataset.status]})`;
    }
    draw();
    dark.addEventListener("change", draw);
    window.addEventListener("resize", () => plot.setSize(size()));
  }

  if (data.kind === "graph") drawGraph();
  else drawChart(data.kind === "confidence" ? confidenceChart : bulletinsChart);
  document.documentElement.dataset.drawn = "yes";
})();
