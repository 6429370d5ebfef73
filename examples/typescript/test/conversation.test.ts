/** A conversation of 20 turns: what an orchestrator in another language does around each of them. */
import assert from "node:assert/strict";
import test from "node:test";

import { Memgraph, type Schema } from "../src/index.js";

const url = process.env["URL"] ?? "http://127.0.0.1:8420";
const key = process.env["KEY"] ?? "";
const server = new Memgraph({ url, key });
const orc = server.orchestrator("orc-1");
const TURNS = 20;
const deadline_ms = 30_000;
const place = { conversation_id: "planning", project_id: "relaunch", deadline_ms };

/** Check that the memory delivered everything in time. */
function complete({ warnings, context }: Schema<"StepContext">): void {
  assert.deepEqual(warnings, []);
  assert.ok(context);
}

test("a conversation of 20 turns has bulletin, block, capture, write-back and diagnostics", async () => {
  const earlier = { ...place, conversation_id: "yesterday" };
  await orc.onMessage({ ...earlier, content: "My name is Alex, and I prefer short answers." });

  for (let number = 1; number <= TURNS; number++) {
    const message = `Turn ${number}: what do I prefer, and what was decided about item ${number - 1}?`;
    const asked = { ...place, content: message, turn_id: `user-${number}` };
    const before = await orc.onMessage(asked);
    complete(before);
    assert.match(before.prompt ?? "", /prefer short answers/);
    assert.ok(!before.context?.text.includes("Turn "), "the conversation itself is left out");
    if (number > 1) assert.match(before.prompt ?? "", new RegExp(`Item ${number - 1} is approved`));
    if (number > 1) assert.match(before.bulletin ?? "", /is approved/);
    assert.equal((await orc.onMessage(asked)).episode_id, before.episode_id);

    const step = { ...place, workflow_run_id: `run-${number}`, step_id: "decide" };
    const prompt = await orc.onStep({ ...step, prompt: "Decide about the next item." });
    complete(prompt);
    const output = { ...step, output: `Decision: Item ${number} is approved.` };
    const written = await orc.onStepOutput(output);
    assert.deepEqual([written.acknowledged, written.memory_ids?.length], [true, 1]);
    assert.deepEqual((await orc.onStepOutput(output)).memory_ids, written.memory_ids);

    const turns = [{ content: `Noted: item ${number}.`, source_role: "assistant", turn_id: `a-${number}` }];
    assert.ok((await orc.onTranscript({ ...place, turns })).acknowledged);
  }

  const evidence = await orc.onDiagnostics({
    question: "Why was item 20 approved?",
    workflow_run_id: "run-20",
    project_id: "relaunch",
    max_nodes: 10,
    deadline_ms,
  });
  assert.ok(evidence.items && evidence.items.length <= 10);
  const decided = evidence.items.find(({ memory }) => memory.content.includes("Item 20"));
  assert.equal(decided?.source.workflow_run_id, "run-20");

  const content = "Item 20 was approved because nobody objected.";
  const memory_ids = evidence.items.map(({ memory }) => memory.memory_id);
  const findings = { project_id: "relaunch", findings: [{ content }], memory_ids, deadline_ms };
  const [finding] = (await orc.recordFindings(findings)).memory_ids ?? [];
  const scoped = server.orchestrator("orc-1", { project: ["relaunch"] });
  assert.ok(finding && (await scoped.trace(finding)).grounds.length > 0);

  const task = { task_id: "task-20", project_id: "relaunch", deadline_ms };
  const run = { workflow_run_id: "run-21", step_id: "draft", tier: "task" } as const;
  const noted = await orc.onStepOutput({ ...task, ...run, output: "Decision: The draft is due on Monday.\nDecision: The font is red." });
  const promote = (noted.memory_ids ?? []).slice(0, 1);
  const ended = await orc.endTask({ ...task, promote });
  assert.deepEqual([Object.keys(ended.promoted ?? {}), ended.acknowledged], [promote, true]);
  assert.ok((ended.cleared ?? 0) > 0);
  assert.equal((await orc.endTask({ ...task, promote })).cleared, 0);
});

test("an agent's own memory has the requests of its document", async () => {
  const ada = orc.memoryEntity("ada");
  const item = { tier: "SemanticMemory", scope: "SessionScope", source: "UserSource" } as const;
  const call = {
    items: [{ ...item, content: "User works with TypeScript", sessionId: "s-1" }],
    callId: "call-1",
  };
  const { storedIds } = await ada.store(call);
  assert.deepEqual((await ada.store(call)).storedIds, storedIds);
  const query = { query: "Does the user work with TypeScript?", tier: "SemanticMemory", limit: 20 } as const;
  const [record] = await ada.retrieve(query);
  assert.equal(record?.content, "User works with TypeScript");
  assert.deepEqual(await ada.listItems({ scope: "SessionScope" }), [record]);
  assert.deepEqual(await orc.memoryEntity("ben").listItems(), []);
  assert.deepEqual(await ada.forget({ itemIds: storedIds }), { deletedCount: 1 });
});
