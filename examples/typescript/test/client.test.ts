/** Against a real server: `URL` and `KEY` come from tests/examples/test_typescript.py. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Memgraph, MemgraphError, type Schema } from "../src/index.js";

const url = process.env["URL"] ?? "http://127.0.0.1:8420";
const key = process.env["KEY"] ?? "";
const server = new Memgraph({ url, key });
const orc = server.orchestrator("orc-1");

test("what is remembered is recalled with its source, corrected and retracted", async () => {
  const first = await orc.remember("Backups are kept for 30 days.");
  assert.equal(first.outcome, "stored");
  assert.ok(first.memory_id);
  const again = await orc.remember({ content: "Backups are kept for 30 days.", type: "Fact" });
  assert.equal(again.outcome, "duplicate");
  const found = await orc.recall("how long are backups kept?");
  assert.equal(found.items?.[0]?.memory.memory_id, first.memory_id);
  assert.ok(found.receipt_id);
  const newer = await orc.correct(first.memory_id, {
    content: "Backups are kept for 90 days.",
    reason: "the auditors asked for it",
  });
  const memory: Schema<"Memory"> = await orc.memory(newer);
  assert.equal(memory.content, "Backups are kept for 90 days.");
  assert.equal((await orc.memory(first.memory_id)).status, "superseded");
  assert.ok(await orc.trace(newer));
  await orc.retract(newer, "a test");
  assert.equal((await orc.memory(newer)).status, "retracted");
});

test("a turn is kept, and a block of memories comes before a message", async () => {
  await orc.remember("Ada is allergic to walnuts.");
  const block = await orc.context("What is Ada allergic to?");
  assert.match(block.text, /walnuts/);
  const id = await orc.saveEpisode({
    content: "What is Ada allergic to?",
    session_id: "monday",
    source_role: "user",
  });
  assert.equal((await orc.memory(id)).session_id, "monday");
});

test("lists are read page by page", async () => {
  for (const content of ["The shop sells bread.", "Ada bakes it.", "Nora delivers it by bicycle."])
    await orc.remember({ content, tags: ["shop"] });
  const found: string[] = [];
  for await (const memory of orc.memories({ tag: ["shop"], limit: 2 })) found.push(memory.content);
  assert.equal(found.length, 3);
  assert.match(found[0] ?? "", /bicycle/);
});

test("a view narrows what is seen", async () => {
  const secret = await orc.remember({ content: "The vault is behind the oak.", sensitivity: "Confidential" });
  assert.ok(secret.memory_id);
  const narrow = server.orchestrator("orc-1", { clearance: "Public" });
  await assert.rejects(narrow.memory(secret.memory_id), { code: "memory.not_found" });
});

test("every operation can be called by its address", async () => {
  const { data } = await server.http.GET("/v1/orchestrators/{orchestrator}/stats", {
    params: { path: { orchestrator: "orc-1" } },
  });
  assert.ok(data);
});

test("a refusal has the library's code", async () => {
  await assert.rejects(orc.memory("fact_0"), (error: unknown) => {
    assert.ok(error instanceof MemgraphError);
    assert.equal(error.code, "memory.not_found");
    assert.equal(error.status, 404);
    return true;
  });
  const stranger = new Memgraph({ url, key: "mgk_wrong" }).orchestrator("orc-1");
  await assert.rejects(stranger.recall("x"), { code: "access.unauthenticated", status: 401 });
  // @ts-expect-error: a type that there is not is refused before it is sent, by the compiler
  await assert.rejects(orc.remember({ content: "x", type: "Opinion" }), { code: "input.invalid" });
});

test("an answer that is no problem document, and one that does not come, are errors too", async () => {
  const said = (body: string, init: ResponseInit) =>
    new Memgraph({ url, fetch: async () => new Response(body, init) }).orchestrator("orc-1");
  await assert.rejects(said("<p>bad gateway", { status: 502 }).recall("x"), {
    code: "client.unexpected",
    status: 502,
  });
  const slow = new Memgraph({
    url,
    timeout: 5,
    fetch: (_, init) =>
      new Promise((_resolve, reject) =>
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)),
      ),
  });
  // The timer of a signal keeps no process alive, as an open connection would.
  const open = setTimeout(() => {}, 10_000);
  await assert.rejects(slow.orchestrator("orc-1").recall("x"), { name: "TimeoutError" });
  clearTimeout(open);
});
