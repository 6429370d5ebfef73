// Colours (from the style sheet), shapes and widths of the graph.
"use strict";

const memgraphGraphStyle = (() => {
  // A colour of the style sheet, in the current scheme.
  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // The style for types, in the order of their colours, in the current colour scheme.
  function of(types) {
    const [ink, paper] = [colour("--graph-ink"), colour("--graph-paper")];
    const [accent, open] = ["--graph-accent", "--graph-open"].map(colour);
    return [
      {
        selector: "node",
        style: {
          label: "data(label)",
          color: ink,
          "font-size": 11,
          "min-zoomed-font-size": 12,
          "text-outline-color": paper,
          "text-outline-width": 2,
          "text-valign": "bottom",
          "text-margin-y": 3,
          "border-color": ink,
          "border-width": 1,
        },
      },
      { selector: "node[size]", style: { width: "data(size)", height: "data(size)" } },
      // Labels of well-connected memories stay visible when zoomed out.
      { selector: "node[ties >= 3]", style: { "min-zoomed-font-size": 10 } },
      { selector: "node[ties >= 8]", style: { "min-zoomed-font-size": 7 } },
      {
        selector: "node[!document].roomy",
        style: { "min-zoomed-font-size": 6, "text-wrap": "wrap", "text-max-width": 130 },
      },
      ...types.map((type, at) => ({
        selector: `node[type = "${type}"]`,
        style: { "background-color": colour(`--graph-type-${at + 1}`) },
      })),
      {
        selector: "node[?document]",
        style: {
          shape: "round-rectangle",
          label: "data(label)",
          "background-color": colour("--graph-box"),
          "background-opacity": 1,
          "border-color": colour("--graph-edge"),
          "border-width": 1,
          padding: 14,
          "compound-sizing-wrt-labels": "exclude",
          color: ink,
          "font-size": 12,
          "min-zoomed-font-size": 5,
          "text-valign": "top",
          "text-halign": "center",
          "text-margin-y": -2,
          "text-wrap": "ellipsis",
          events: "no",
        },
      },
      { selector: "node.above", style: { "text-valign": "top", "text-margin-y": -3 } },
      { selector: "node[?document].below", style: { "text-valign": "bottom", "text-margin-y": 6 } },
      { selector: "node[?document].roomy", style: { "compound-sizing-wrt-labels": "include" } },
      { selector: 'node[kind = "episode"]', style: { shape: "round-rectangle" } },
      { selector: 'node[kind = "reflection"]', style: { shape: "diamond" } },
      { selector: 'node[status != "active"]', style: { "background-opacity": 0.25 } },
      {
        selector: "edge",
        style: {
          width: 2.5,
          "line-color": colour("--graph-edge"),
          "target-arrow-color": colour("--graph-edge"),
          "target-arrow-shape": "triangle",
          "arrow-scale": 1,
          "curve-style": "straight",
        },
      },
      { selector: 'edge[type = "Updates"]', style: { "line-style": "dashed" } },
      { selector: 'edge[type = "DerivedFrom"]', style: { "line-style": "dotted" } },
      { selector: "edge[?open]", style: line(open, 5) },
      { selector: ".left-out", style: { display: "none" } },
      { selector: "node:selected", style: { "border-color": accent, "border-width": 5 } },
    ];
  }

  function line(its, width) {
    return { "line-color": its, "target-arrow-color": its, width };
  }

  return { of };
})();
