// Where the memories of a drawing stand: joined ones pull, near ones push (Fruchterman and
// Reingold, 1991, with a grid of neighbours). Those of a document stand in a box of their own. The
// same graph always gives the same picture.
"use strict";

const memgraphLayout = (() => {
  const DISTANCE = 64; // between two that are joined, in units of the drawing
  const REACH = 2 * DISTANCE; // beyond it nothing pushes
  const [FEWEST_ROUNDS, MOST_ROUNDS, WORK] = [25, 90, 45_000]; // fewer for more memories
  const AHEAD = [[0, 0], [1, 0], [-1, 1], [0, 1], [1, 1]]; // of each pair of cells one way
  const [FEW, ROOM] = [30, 2]; // so few stand so much farther apart
  const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

  // Positions by id. `ids`: in the order of importance; `pairs`: of ids that are joined;
  // `known`: positions by id of what stands already and stays.
  function place(ids, pairs, known = new Map()) {
    const index = new Map(ids.map((id, at) => [id, at]));
    const joined = pairs
      .map(([from, to]) => [index.get(from), index.get(to)])
      .filter(([from, to]) => from !== undefined && to !== undefined && from !== to);
    const room = ids.length <= FEW ? ROOM : 1;
    const world = start(ids, neighbours(ids.length, joined), known, room);
    const rounds = Math.max(FEWEST_ROUNDS, Math.min(MOST_ROUNDS, WORK / ids.length));
    for (let round = 0; round < rounds && world.moving; round += 1) {
      world.dx.fill(0);
      world.dy.fill(0);
      push(world);
      pull(world, joined);
      move(world, DISTANCE * (1 - round / rounds) ** 1.5);
    }
    return new Map(ids.map((id, at) => [id, { x: world.x[at] * room, y: world.y[at] * room }]));
  }

  function neighbours(count, joined) {
    const found = Array.from({ length: count }, () => []);
    for (const [from, to] of joined) {
      found[from].push(to);
      found[to].push(from);
    }
    return found;
  }

  // Near a neighbour that stands, else on a spiral in the order of a walk along the edges.
  function start(ids, near, known, room) {
    const count = ids.length;
    const world = {
      x: new Float64Array(count),
      y: new Float64Array(count),
      dx: new Float64Array(count),
      dy: new Float64Array(count),
      fixed: ids.map((id) => known.has(id)),
      moving: ids.some((id) => !known.has(id)),
    };
    walk(near).forEach((at, turn) => {
      const angle = turn * GOLDEN_ANGLE;
      const anchor = near[at].find((other) => world.fixed[other]);
      const stands = known.get(ids[at]) || (anchor !== undefined && known.get(ids[anchor]));
      const radius = known.has(ids[at]) ? 0 : stands ? DISTANCE : 0.6 * DISTANCE * Math.sqrt(turn);
      world.x[at] = (stands ? stands.x / room : 0) + radius * Math.cos(angle);
      world.y[at] = (stands ? stands.y / room : 0) + radius * Math.sin(angle);
    });
    return world;
  }

  function walk(near) {
    const order = [];
    const seen = new Uint8Array(near.length);
    for (let first = 0; first < near.length; first += 1) {
      const waiting = seen[first] ? [] : [first];
      seen[first] = 1;
      for (let next = 0; next < waiting.length; next += 1) {
        for (const other of near[waiting[next]]) {
          if (!seen[other]) {
            seen[other] = 1;
            waiting.push(other);
          }
        }
      }
      for (const each of waiting) order.push(each);
    }
    return order;
  }

  const cell = (value) => Math.floor(value / REACH);
  const key = (column, row) => column * 65_536 + row;

  function cells(world) {
    const found = new Map();
    for (let at = 0; at < world.x.length; at += 1) {
      const [column, row] = [cell(world.x[at]), cell(world.y[at])];
      const there = found.get(key(column, row));
      if (there) there.members.push(at);
      else found.set(key(column, row), { column, row, members: [at] });
    }
    return found;
  }

  function push(world) {
    const found = cells(world);
    for (const { column, row, members } of found.values()) {
      for (const [right, down] of AHEAD) {
        const others = found.get(key(column + right, row + down));
        if (others) pushAll(world, members, others.members);
      }
    }
  }

  function pushAll(world, members, others) {
    for (let first = 0; first < members.length; first += 1) {
      const from = members === others ? first + 1 : 0;
      for (let second = from; second < others.length; second += 1) {
        pushApart(world, members[first], others[second]);
      }
    }
  }

  function pushApart(world, one, other) {
    const x = world.x[one] - world.x[other] || (one - other) * 1e-3;
    const y = world.y[one] - world.y[other];
    const square = x * x + y * y;
    if (square > REACH * REACH) return;
    const force = (DISTANCE * DISTANCE) / Math.max(square, 1);
    world.dx[one] += x * force;
    world.dy[one] += y * force;
    world.dx[other] -= x * force;
    world.dy[other] -= y * force;
  }

  function pull(world, joined) {
    for (const [from, to] of joined) {
      const x = world.x[from] - world.x[to];
      const y = world.y[from] - world.y[to];
      const force = Math.hypot(x, y) / DISTANCE;
      world.dx[from] -= x * force;
      world.dy[from] -= y * force;
      world.dx[to] += x * force;
      world.dy[to] += y * force;
    }
  }

  function move(world, most) {
    for (let at = 0; at < world.x.length; at += 1) {
      if (world.fixed[at]) continue;
      // A little towards the middle, or what nothing joins drifts away.
      const x = world.dx[at] - 0.05 * world.x[at];
      const y = world.dy[at] - 0.05 * world.y[at];
      const length = Math.hypot(x, y) || 1;
      const step = Math.min(length, most) / length;
      world.x[at] += x * step;
      world.y[at] += y * step;
    }
  }

  // ── a drawing of documents: each of them a box, and boxes that touch no other ────────────────

  const GAP = 16; // between two boxes
  const EDGE = 30; // from the middle of a memory to the edge of its box
  const SIDE = 44; // the same to the side: names are wider than high
  const [LABEL, LINES] = [79, 56]; // of few memories: half the width of a wrapped name, its height
  const SHAPE = 1.4; // how much wider a box is than high
  const WIDTH = 170 + 2 * 16; // at least: its name has to fit
  const NAME = 34; // above a box, for its name
  const [STRIDE, TURN] = [14, 0.35]; // along the spiral on which a place is looked for

  // Positions by id, as of `place`, for a first drawing. `groups`: the box of an id, if it has one;
  // `aspect`: how much wider the frame is than high.
  function boxes(ids, pairs, groups, aspect, roomy = ids.length <= FEW) {
    const own = clusters(ids, pairs, groups);
    const of = new Map(own.flatMap((cluster, at) => cluster.ids.map((id) => [id, at])));
    const inside = own.map(() => []);
    const links = own.map(() => []);
    for (const [from, to] of pairs) {
      const [one, other] = [of.get(from), of.get(to)];
      if (one === undefined || other === undefined) continue;
      if (one === other) inside[one].push([from, to]);
      else {
        links[one].push(other);
        links[other].push(one);
      }
    }
    const drawn = own.map((cluster, at) => box(cluster, inside[at], roomy));
    pack(drawn, links, aspect);
    const found = new Map();
    for (const { places, x, y, left, top } of drawn) {
      for (const [id, place] of places) found.set(id, { x: place.x - left + x, y: place.y - top + y });
    }
    return found;
  }

  // Members of one box; of what has none, what is joined.
  function clusters(ids, pairs, groups) {
    const found = new Map();
    const loose = ids.filter((id) => !groups.get(id));
    for (const id of ids) {
      const group = groups.get(id);
      if (!group) continue;
      if (!found.has(group)) found.set(group, { ids: [], boxed: true });
      found.get(group).ids.push(id);
    }
    const index = new Map(loose.map((id, at) => [id, at]));
    const joined = pairs
      .map(([from, to]) => [index.get(from), index.get(to)])
      .filter(([from, to]) => from !== undefined && to !== undefined);
    const near = neighbours(loose.length, joined);
    const seen = new Set();
    loose.forEach((id, first) => {
      if (seen.has(first)) return;
      seen.add(first);
      const members = [first];
      for (let next = 0; next < members.length; next += 1) {
        for (const other of near[members[next]]) {
          if (!seen.has(other)) {
            seen.add(other);
            members.push(other);
          }
        }
      }
      found.set(`loose ${first}`, { ids: members.map((at) => loose[at]), boxed: false });
    });
    return [...found.values()];
  }

  function box({ ids, boxed }, pairs, roomy) {
    // In a box, what is not joined stands side by side.
    const places = boxed ? boxes(ids, pairs, new Map(), SHAPE, roomy) : place(ids, pairs);
    const [xs, ys] = [[...places.values()].map(({ x }) => x), [...places.values()].map(({ y }) => y)];
    const [margin, beside] = [GAP / 2 + EDGE, GAP / 2 + (roomy ? LABEL : boxed ? EDGE : SIDE)];
    const [right, bottom] = [Math.max(...xs) + beside, Math.max(...ys) + margin + (roomy ? LINES : 0)];
    const narrow = boxed ? Math.max(WIDTH - (right - Math.min(...xs) + beside), 0) / 2 : 0;
    const top = Math.min(...ys) - margin - (boxed ? NAME : 0);
    const left = Math.min(...xs) - beside - narrow;
    return { places, left, top, width: right - left + narrow, height: bottom - top, x: 0, y: 0 };
  }

  // The largest first, each as near as there is room to those that it is joined to.
  function pack(drawn, links, aspect) {
    const order = drawn.map((_, at) => at);
    order.sort((one, other) => size(drawn[other]) - size(drawn[one]) || one - other);
    const standing = [];
    for (const at of order) {
      const own = drawn[at];
      const near = links[at].map((other) => drawn[other]).filter((other) => other.stands);
      const middle = {
        x: near.reduce((sum, each) => sum + each.x + each.width / 2, 0) / (near.length || 1),
        y: near.reduce((sum, each) => sum + each.y + each.height / 2, 0) / (near.length || 1),
      };
      for (let turn = 0; ; turn += 1) {
        const radius = STRIDE * Math.sqrt(turn);
        own.x = middle.x + radius * Math.cos(turn * TURN) * aspect - own.width / 2;
        own.y = middle.y + radius * Math.sin(turn * TURN) - own.height / 2;
        if (!standing.some((other) => overlaps(own, other))) break;
      }
      own.stands = true;
      standing.push(own);
    }
  }

  const size = (each) => each.width * each.height;

  function overlaps(one, other) {
    return (
      one.x < other.x + other.width &&
      other.x < one.x + one.width &&
      one.y < other.y + other.height &&
      other.y < one.y + one.height
    );
  }

  return { place, boxes };
})();
