// The graph explorer: loads memories and edges as JSON, draws them, and describes the selected one.
// Everything that comes from a memory is set as text, never as markup.
"use strict";

(() => {
  const frame = document.getElementById("graph");
  if (!frame) return;

  const MANY = 1_200; // from so many elements on, what is moved is drawn coarsely
  const LISTED = 100;
  const FEW = 30; // so few have room for their names
  const MARGIN = 40;
  const NEAR = 1.25; // as near as a whole drawing is shown
  const SEEDS = 200; // so many may be asked for together
  const PAUSE_MS = 200; // a slider has stopped when it was still for so long
  const form = document.getElementById("graph-filters");
  const told = document.getElementById("graph-told");
  const chosen = document.getElementById("graph-chosen");
  const list = document.getElementById("graph-list");
  const slider = document.getElementById("graph-time");
  const expanded = new Set(); // beyond what the page began with
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const filters = ["type", "status", "edge"];
  const types = JSON.parse(frame.dataset.types);
  let asOf = form.elements.as_of.value;
  let asked = 0;
  let cut = ""; // what the drawing leaves out

  const cy = cytoscape({
    container: frame,
    minZoom: 0.05,
    maxZoom: 4,
    boxSelectionEnabled: false,
    textureOnViewport: false,
    style: memgraphGraphStyle.of(types),
  });

  // ── loading ──────────────────────────────────────────────────────────────────────────────────

  function address() {
    const query = new URLSearchParams(location.search);
    query.delete("as_of");
    for (const id of [...expanded].slice(-SEEDS)) query.append("expand", id);
    if (asOf) query.set("as_of", asOf);
    return `${frame.dataset.url}?${query}`;
  }

  // The JSON of a response.
  async function answered(place) {
    const answer = await fetch(place, { credentials: "same-origin" }).catch(() => {
      throw new Error("the server did not respond");
    });
    if (answer.redirected) throw new Error("your session has ended: sign in again");
    if (!answer.ok) throw new Error(await trouble(answer));
    return answer.json();
  }

  // The message of an error page.
  async function trouble(answer) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const alert = page.querySelector("[role=alert]");
    return alert ? alert.textContent.trim() : `request failed: ${answer.status}`;
  }

  // null: there is no answer, or it is no longer wanted.
  async function ask(place) {
    const turn = (asked += 1);
    tell("Loading");
    try {
      const found = await answered(place);
      return turn === asked ? found : null; // else a later question is on its way
    } catch (error) {
      if (turn === asked) tell(error.message);
      return null;
    }
  }

  function tell(text) {
    told.textContent = text;
  }

  // ── drawing ─────────────────────────────────────────────────────────────────────────────────

  function elements(answer) {
    const groups = answer.groups.map(({ id, label }) => ({
      group: "nodes",
      data: { id: `group:${id}`, label, document: true },
      selectable: false,
      grabbable: false,
    }));
    const nodes = answer.nodes.map((node) => ({
      group: "nodes",
      data: {
        ...node,
        size: 18 + node.importance / 5,
        ...(node.group ? { parent: `group:${node.group}` } : {}),
      },
    }));
    const edges = answer.edges.map((edge) => ({ group: "edges", data: edge }));
    return [...groups, ...nodes, ...edges];
  }

  // Of memories alone: a document is a node of the library, too.
  const memories = () => cy.nodes("[!document]");

  // Draws an answer; what stands stays where it is, and what is not in it goes.
  function draw(answer) {
    const known = new Map(memories().map((node) => [node.id(), { ...node.position() }]));
    const fresh = elements(answer);
    cy.batch(() => {
      const kept = new Set(fresh.map((each) => each.data.id));
      const gone = cy.elements().filter((each) => !kept.has(each.id()));
      gone.nodes("[?document]").children().move({ parent: null }); // a box takes what is in it along
      gone.remove();
      for (const each of fresh) {
        const there = cy.getElementById(each.data.id);
        if (there.empty()) cy.add(each);
        else {
          const { parent = null, ...data } = each.data;
          there.data(data);
          if (each.group === "nodes" && !data.document && there.data("parent") !== (parent ?? undefined)) {
            there.move({ parent });
          }
        }
      }
      tie();
      arrange(known);
      choose();
    });
    coarse(cy.elements().length > MANY);
    const reasons = answer.cut_reasons.join(", ");
    cut = reasons ? `; truncated (${reasons})` : "";
    report();
  }

  // How much each is joined to, for the size from which on its name is shown.
  function tie() {
    memories().forEach((node) => {
      const ties = node.degree(false);
      if (node.data("ties") !== ties) node.data("ties", ties);
    });
  }

  function arrange(known) {
    const ids = memories().map((node) => node.id());
    const pairs = cy.edges().map((edge) => [edge.data("source"), edge.data("target")]);
    const groups = new Map(memories().map((node) => [node.id(), node.data("parent")]));
    const aspect = Math.max(cy.width() / Math.max(cy.height(), 1), 0.5);
    const places = known.size
      ? memgraphLayout.place(ids, pairs, known)
      : memgraphLayout.boxes(ids, pairs, groups, aspect);
    memories().positions((node) => places.get(node.id()));
    const roomy = ids.length <= FEW;
    cy.nodes().forEach((node) => {
      if (node.hasClass("roomy") !== roomy) node.toggleClass("roomy", roomy);
      if (roomy) aside(node);
    });
  }

  // Puts a name on the side of a memory, or of a document, to which fewer edges lead.
  function aside(node) {
    const own = node.isParent() ? node.children() : node;
    const others = own.neighborhood("node").not(own);
    // The position of a document is known only once it was drawn.
    const middle = (axis) => own.reduce((total, each) => total + each.position(axis), 0) / own.length;
    const [left, top] = [middle("x"), middle("y")];
    const down = others.map((other) => {
      const [x, y] = [other.position("x") - left, other.position("y") - top];
      return y / Math.hypot(x, y, 1);
    });
    const sum = down.reduce((total, each) => total + each, 0);
    node.toggleClass("above", !node.data("document") && sum > 0);
    node.toggleClass("below", Boolean(node.data("document")) && sum < 0);
  }

  function coarse(many) {
    // Set when it was made, but read at every frame.
    const renderer = cy.renderer();
    renderer.hideEdgesOnViewport = many;
    renderer.textureOnViewport = many;
  }

  function report() {
    const shown = memories().not(".left-out").length;
    const time = asOf ? ` as of ${asOf}` : "";
    const edges = edgesShown(cy.edges());
    const those = `${shown} ${shown === 1 ? "memory" : "memories"}`;
    tell(`${those} and ${edges} ${edges === 1 ? "edge" : "edges"}${time}${cut}`);
    listed();
  }

  // An edge goes with either of its ends.
  function edgesShown(edges) {
    const out = (each) => each.hasClass("left-out");
    return edges.filter((edge) => ![edge, edge.source(), edge.target()].some(out)).length;
  }

  // ── filters ─────────────────────────────────────────────────────────────────────────────────

  function ticked(name) {
    return new Set([...form.querySelectorAll(`[name="${name}"]:checked`)].map((box) => box.value));
  }

  function choose() {
    const [types, statuses, edges] = filters.map(ticked);
    memories().forEach((node) => {
      const fits = types.has(node.data("type")) && statuses.has(node.data("status"));
      leaveOut(node, !fits);
    });
    cy.nodes("[?document]").forEach((box) => {
      leaveOut(box, box.children().not(".left-out").empty());
    });
    cy.edges().forEach((edge) => {
      leaveOut(edge, !edges.has(edge.data("type")));
    });
  }

  // Only where something changes: each change has the element styled once more.
  function leaveOut(element, out) {
    if (element.hasClass("left-out") !== out) element.toggleClass("left-out", out);
  }

  // ── the selected memory, and the list, which needs neither sight nor a mouse ──────────────────────────

  function row(name, value) {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    text.textContent = value;
    return [term, text];
  }

  function describe(node) {
    const memory = node.data();
    const about = document.createElement("dl");
    about.append(
      ...row("Type", `${memory.type}, ${memory.kind}`),
      ...row("Status", memory.status),
      ...row("Confidence", memory.confidence.toFixed(2)),
      ...row("Stored", memory.created_at),
      ...row("Edges shown", String(edgesShown(node.connectedEdges()))),
    );
    const text = document.createElement("p");
    text.className = "content";
    text.textContent = memory.summary;
    const link = document.createElement("a");
    const then = asOf ? `?${new URLSearchParams({ as_of: asOf })}` : "";
    link.href = `${frame.dataset.memories}/${encodeURIComponent(memory.id)}${then}`;
    link.textContent = "Open memory";
    const more = button("Expand", () => expand(memory.id));
    chosen.replaceChildren(text, about, more, " ", link);
  }

  function button(text, pressed) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", pressed);
    return made;
  }

  async function expand(id) {
    expanded.add(id);
    const answer = await ask(address());
    if (answer !== null) draw(answer);
  }

  function pick(node) {
    cy.elements().unselect();
    node.select();
  }

  function listed() {
    const wanted = form.elements.find.value.trim().toLowerCase();
    const fitting = memories().not(".left-out").filter((node) => {
      return !wanted || node.data("summary").toLowerCase().includes(wanted);
    });
    const entries = fitting.slice(0, LISTED).map((node) => {
      const entry = document.createElement("li");
      entry.append(
        button(node.data("label"), () => {
          pick(node);
          cy.animate({ center: { eles: node }, zoom: Math.max(cy.zoom(), 1) }, { duration: 150 });
        }),
      );
      return entry;
    });
    list.replaceChildren(...entries);
  }

  // ── the slider over time ────────────────────────────────────────────────────────────────────

  const last = Number(slider.dataset.now);
  let first = last;
  let pause = 0;
  function moved() {
    const part = Number(slider.value) / Number(slider.max);
    const now = part === 1;
    asOf = now ? "" : new Date(first + part * (last - first)).toISOString();
    say();
    clearTimeout(pause);
    pause = setTimeout(travel, PAUSE_MS);
  }

  function say() {
    const text = asOf ? asOf.slice(0, 16).replace("T", " ") : "now";
    slider.setAttribute("aria-valuetext", text);
    document.getElementById("graph-time-told").textContent = text;
  }

  async function travel() {
    const answer = await ask(address());
    if (answer === null) return;
    draw(answer);
    inView();
    chosen.replaceChildren();
  }

  // ── beginning ───────────────────────────────────────────────────────────────────────────────

  // By where memories stand, not by their outlines: these take half a second to measure.
  function whole() {
    const places = memories().not(".left-out").map((node) => node.position());
    if (!places.length) return;
    const [left, right] = ends(places.map((place) => place.x));
    const [top, bottom] = ends(places.map((place) => place.y));
    const margin = places.length <= FEW ? 2 * MARGIN : MARGIN; // of few, names are shown
    const wide = (cy.width() - 2 * margin) / Math.max(right - left, 1);
    const high = (cy.height() - 2 * margin) / Math.max(bottom - top, 1);
    const zoom = Math.max(cy.minZoom(), Math.min(wide, high, NEAR));
    cy.viewport({
      zoom,
      pan: {
        x: (cy.width() - zoom * (left + right)) / 2,
        y: (cy.height() - zoom * (top + bottom)) / 2,
      },
    });
  }

  // Names of documents, and of what is joined to much, are as large on the screen as text is, from
  // whatever distance.
  let naming = 0;
  let drawnAt = 0;
  function readable() {
    clearTimeout(naming);
    naming = setTimeout(name, 120);
  }

  function name() {
    const zoom = Math.min(cy.zoom(), 1);
    if (Math.abs(zoom - drawnAt) < 0.02) return;
    drawnAt = zoom;
    cy.style()
      .selector("node[?document]")
      .style({
        "font-size": 12 / zoom,
        "text-outline-width": 3 / zoom,
        "text-max-width": (box) => Math.max(box.width() + 28, 195),
      })
      .update();
  }

  // Where nothing that is left can be seen, all of it is.
  function inView() {
    const seen = cy.extent();
    const within = ({ x, y }) => x > seen.x1 && x < seen.x2 && y > seen.y1 && y < seen.y2;
    const left = memories().not(".left-out");
    if (!left.some((node) => within(node.position()))) whole();
  }

  const ends = (values) => [Math.min(...values), Math.max(...values)];

  async function begin() {
    const answer = await ask(frame.dataset.url + location.search);
    if (answer === null) return;
    cy.one("render", () => {
      document.documentElement.dataset.drawn = Math.round(performance.now());
    });
    asOf = answer.as_of ?? ""; // as the server reads it: a browser takes a time without a zone for its own
    draw(answer);
    whole();
    name();
    first = Math.min(last, ...answer.nodes.map((node) => Date.parse(node.created_at)));
    if (asOf) slider.value = slider.max * ((Date.parse(asOf) - first) / Math.max(last - first, 1));
    say();
  }

  const zooms = { "graph-nearer": 1.4, "graph-farther": 1 / 1.4 };
  for (const [id, factor] of Object.entries(zooms)) {
    document.getElementById(id).addEventListener("click", () => {
      const middle = { x: cy.width() / 2, y: cy.height() / 2 };
      cy.zoom({ level: cy.zoom() * factor, renderedPosition: middle });
    });
  }
  document.getElementById("graph-whole").addEventListener("click", whole);
  form.addEventListener("change", (event) => {
    if (event.target === slider) return;
    cy.batch(choose);
    report();
    inView();
  });
  form.elements.find.addEventListener("input", listed);
  form.addEventListener("submit", (event) => event.preventDefault());
  slider.addEventListener("input", moved);
  cy.on("zoom", readable);
  cy.on("select", "node[!document]", (event) => describe(event.target));
  cy.on("dbltap", "node[!document]", (event) => expand(event.target.id()));
  dark.addEventListener("change", () => {
    cy.style(memgraphGraphStyle.of(types));
    drawnAt = 0;
    name();
  });
  frame.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    cy.panBy({ x: step[0], y: step[1] });
  });
  window.memgraphGraph = cy; // for tests and a browser's console
  begin();
})();
