/**
 * A client of memgraph's HTTP API. Paths, bodies and answers are typed by the OpenAPI document
 * (`schema.ts`); what has no method of its own is called through `http`.
 */

import createClient, { type Client } from "openapi-fetch";

import type { components, operations, paths } from "./schema.js";

export type { components, operations, paths };

/** A named schema of the API, such as `Schema<"Memory">`. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

/** What a view leaves of what the key may see. */
export type View = NonNullable<operations["recall"]["parameters"]["query"]>;
type ListOf<Name extends keyof operations> = Omit<
  NonNullable<operations[Name]["parameters"]["query"]>,
  keyof View
>;

export interface Options {
  /** The address of `memgraph serve`, such as `http://127.0.0.1:8420`. */
  url: string;
  /** The secret of a key, as `memgraph key create` prints it. */
  key?: string;
  /** Milliseconds that an answer may take; 120,000 unless given, as a model may take a minute. */
  timeout?: number;
  fetch?: typeof globalThis.fetch;
}

/** A refusal of the server, with the library's own code, such as `memory.not_found`. */
export class MemgraphError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: Record<string, unknown>;

  constructor(problem: Schema<"Problem">) {
    super(`${problem.code}: ${problem.detail}`);
    this.name = "MemgraphError";
    this.code = problem.code;
    this.status = problem.status;
    this.details = problem.details ?? {};
  }
}

/** A server; every method raises `MemgraphError` when it refuses. */
export class Memgraph {
  /** Every operation by its address, typed; its `data` is there, since errors are raised. */
  readonly http: Client<paths>;

  constructor({ url, key, timeout = 120_000, fetch = globalThis.fetch }: Options) {
    this.http = createClient<paths>({
      baseUrl: url.replace(/\/+$/, ""),
      headers: key === undefined ? {} : { Authorization: `Bearer ${key}` },
      // A redirect would carry the key to another address.
      redirect: "error",
      fetch: (request) =>
        fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeout)]) }),
    });
    this.http.use({
      async onResponse({ response }) {
        if (!response.ok) throw new MemgraphError(await problemOf(response));
      },
    });
  }

  /** Create an orchestrator; the key must be allowed to. */
  async create(name: string): Promise<Orchestrator> {
    await this.http.POST("/v1/orchestrators", { body: { name } });
    return this.orchestrator(name);
  }

  /** Return one orchestrator, seen through a view that may narrow what the key sees. */
  orchestrator(name: string, view: View = {}): Orchestrator {
    return new Orchestrator(this.http, name, view);
  }
}

/** One orchestrator of a server: what agents use most. */
export class Orchestrator {
  constructor(
    readonly http: Client<paths>,
    readonly name: string,
    readonly view: View,
  ) {}

  /** Store a memory; the outcome says what it repeats, updates or contradicts. */
  async remember(memory: string | Schema<"MemoryInput">): Promise<Schema<"RememberResult">> {
    const body = typeof memory === "string" ? { content: memory } : memory;
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/memories", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Store what was said in a conversation, and return its id. */
  async saveEpisode(episode: Schema<"EpisodeInput">): Promise<string> {
    const { memory_id } = must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/episodes", {
        params: this.params(),
        body: episode,
      }),
    );
    return memory_id;
  }

  /** Return what fits a question, with its sources. */
  async recall(query: string | Schema<"RecallRequest">): Promise<Schema<"Bundle">> {
    const body = typeof query === "string" ? { query } : query;
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/recall", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Return the block of memories to put before a message. */
  async context(prompt: string | Schema<"BlockWanted">): Promise<Schema<"ContextBlock">> {
    const body = typeof prompt === "string" ? { prompt } : prompt;
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/context/block", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Return one memory. */
  async memory(memory_id: string): Promise<Schema<"Memory">> {
    return must(
      await this.http.GET("/v1/orchestrators/{orchestrator}/memories/{memory_id}", {
        params: this.params({ memory_id }),
      }),
    );
  }

  /** Yield memories, newest first, page by page. */
  async *memories(wanted: ListOf<"list_memories"> = {}): AsyncGenerator<Schema<"Memory">> {
    let cursor = wanted.cursor;
    do {
      const page: Schema<"MemoryPage"> = must(
        await this.http.GET("/v1/orchestrators/{orchestrator}/memories", {
          params: {
            path: { orchestrator: this.name },
            query: { ...this.view, ...wanted, ...(cursor === undefined ? {} : { cursor }) },
          },
        }),
      );
      yield* page.items;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Replace a memory's text by a new memory, and return the new one's id. */
  async correct(memory_id: string, body: Schema<"Correction">): Promise<string> {
    const corrected = must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/memories/{memory_id}/correct", {
        params: this.params({ memory_id }),
        body,
      }),
    );
    return corrected.memory_id;
  }

  /** Put a memory out of force; its history stays. */
  async retract(memory_id: string, reason: string): Promise<void> {
    await this.http.POST("/v1/orchestrators/{orchestrator}/memories/{memory_id}/retract", {
      params: this.params({ memory_id }),
      body: { reason },
    });
  }

  /** Return a memory's sources and what became of it. */
  async trace(memory_id: string): Promise<Schema<"Trace">> {
    return must(
      await this.http.GET("/v1/orchestrators/{orchestrator}/memories/{memory_id}/trace", {
        params: this.params({ memory_id }),
      }),
    );
  }

  /** Store a message, and return the bulletin and the block to put before its prompt. */
  async onMessage(body: Schema<"MessageInput">): Promise<Schema<"TurnContext">> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/turns/message", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Return the bulletin and the block to put before the prompt of a workflow step. */
  async onStep(body: Schema<"StepInput">): Promise<Schema<"StepContext">> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/turns/step", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Store what a step's output says. */
  async onStepOutput(body: Schema<"StepOutputInput">): Promise<Schema<"WriteBackResult">> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/turns/output", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Store turns of a conversation, such as the agent's answer. */
  async onTranscript(body: Schema<"TranscriptInput">): Promise<Schema<"WriteBackResult">> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/turns/transcript", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Return the evidence for a question, with its sources. */
  async onDiagnostics(body: Schema<"InquiryInput">) {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/turns/diagnostics", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Store the findings of a diagnosis, with their evidence. */
  async recordFindings(body: Schema<"FindingsInput">): Promise<Schema<"WriteBackResult">> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/turns/findings", {
        params: this.params(),
        body,
      }),
    );
  }

  /** End a task: promote chosen memories to its project, and retract the others. */
  async endTask(body: Schema<"TaskInput">): Promise<Schema<"TaskOutcome">> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/turns/end", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Return the private memory of one agent. */
  memoryEntity(agentId: string): MemoryEntity {
    return new MemoryEntity(this.http, this.name, this.view, agentId);
  }

  private params<Ids extends Record<string, string>>(ids?: Ids) {
    return { path: { orchestrator: this.name, ...ids } as { orchestrator: string } & Ids, query: this.view };
  }
}

/** The private memory of one agent; its requests take effect one after another. */
export class MemoryEntity {
  constructor(
    readonly http: Client<paths>,
    readonly name: string,
    readonly view: View,
    readonly agentId: string,
  ) {}

  /** Store items, all or none; with a `callId` a repeated call stores nothing. */
  async store(body: Schema<"StoreRequest">): Promise<Schema<"StoreResult">> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/agents/{agent_id}/memory/store", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Return the items that match a query, best first. */
  async retrieve(body: Schema<"RetrieveRequest">): Promise<Schema<"MemoryItemRecord">[]> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/agents/{agent_id}/memory/retrieve", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Retract the items that meet every criterion. */
  async forget(body: Schema<"ForgetRequest">): Promise<Schema<"ForgetResult">> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/agents/{agent_id}/memory/forget", {
        params: this.params(),
        body,
      }),
    );
  }

  /** Return the items, newest first. */
  async listItems(body: Schema<"ListRequest"> = {}): Promise<Schema<"MemoryItemRecord">[]> {
    return must(
      await this.http.POST("/v1/orchestrators/{orchestrator}/agents/{agent_id}/memory/listItems", {
        params: this.params(),
        body,
      }),
    );
  }

  private params() {
    return { path: { orchestrator: this.name, agent_id: this.agentId }, query: this.view };
  }
}

function must<Data>({ data }: { data?: Data }): Data {
  if (data === undefined) throw new TypeError("the server answered without a body");
  return data;
}

/** Return the refusal that a response holds; what stands before the server may answer otherwise. */
async function problemOf(response: Response): Promise<Schema<"Problem">> {
  const text = await response.text();
  try {
    const found: unknown = JSON.parse(text);
    if (typeof found === "object" && found !== null && "code" in found && "detail" in found)
      return found as Schema<"Problem">;
  } catch {
    // No problem document: the status says what there is to say.
  }
  const { status, statusText } = response;
  return { code: "client.unexpected", status, title: statusText, detail: text.slice(0, 200) || statusText };
}
