/** The tools: each with its description, its arguments, what it changes, and the calls of the API that it makes. */
import type { Checkpoint } from "../../protocol/checkpoint.ts";
import type { Process } from "../../protocol/process.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import { editFile, readFile, searchFiles, writeFile } from "./file-tools.ts";
import type { ToolCall } from "./messages.ts";
import { readLog, runCommand } from "./run.ts";

type Schema = Record<string, { type: string; description: string; enum?: string[] }>;

type Tool = {
  description: string;
  args: Schema;
  required?: string[];
  /** Left out: it changes something, and destroys nothing. */
  effect?: "read" | "destroy";
  /** The caller names a sandbox, unless its token does. */
  ofSandbox?: false;
  run(call: ToolCall): Promise<object | string>;
};

const text = (description: string) => ({ type: "string", description });
const number = (description: string) => ({ type: "integer", description });

const path = text("Absolute, or below /workspace.");
const command = text("A line for the shell.");
const cwd = text("The folder to run in; /workspace by default.");
const lease = text("The token of the lease, while you hold one.");
const process = text("The id of a process.");

export const tools: Record<string, Tool> = {
  sandbox_create: {
    description: "Create an isolated Linux sandbox and wait until it runs.",
    args: { from: text("The id of a checkpoint to start with.") },
    ofSandbox: false,
    run: async ({ calls, args }) =>
      shown(
        await calls.json<Sandbox>("POST", "/v1/sandboxes", {
          ...(args.from === undefined ? {} : { from: args.from }),
          waitMs: 25_000,
        }),
      ),
  },
  sandbox_list: {
    description: "List your sandboxes, newest first.",
    args: {},
    effect: "read",
    ofSandbox: false,
    run: async ({ calls }) => {
      const states = "starting,running,pausing,paused,failed";
      const query = `/v1/sandboxes?limit=100&state=${states}`;
      const { sandboxes } = await calls.json<{ sandboxes: Sandbox[] }>("GET", query);
      return { sandboxes: sandboxes.map(shown) };
    },
  },
  sandbox_get: {
    description: "Get the state of a sandbox.",
    args: {},
    effect: "read",
    run: async ({ calls, sandbox }) => shown(await calls.json<Sandbox>("GET", sandbox)),
  },
  sandbox_pause: {
    description: "Stop everything that runs in a sandbox and keep its files.",
    args: { lease },
    effect: "destroy",
    run: async ({ calls, sandbox, args }) =>
      shown(await calls.json<Sandbox>("POST", `${sandbox}/pause`, undefined, leaseOf(args))),
  },
  sandbox_destroy: {
    description: "Destroy a sandbox with all its files.",
    args: { lease },
    effect: "destroy",
    run: async ({ calls, sandbox, args }) =>
      shown(await calls.json<Sandbox>("DELETE", sandbox, undefined, leaseOf(args))),
  },
  sandbox_fork: {
    description:
      "Start another sandbox with a copy of the present files. Processes are not copied.",
    args: { lease },
    run: async ({ calls, sandbox, args }) => {
      const made = await calls.json<Checkpoint>(
        "POST",
        `${sandbox}/checkpoints`,
        {},
        leaseOf(args),
      );
      const fork = { from: made.id, waitMs: 25_000 };
      return shown(await calls.json<Sandbox>("POST", "/v1/sandboxes", fork));
    },
  },
  run: {
    description:
      "Run a command to its end. Output beyond 30 KB is cut: `process_log` reads on from the cursor. Cancelling the call ends the command.",
    args: {
      command,
      cwd,
      timeout_ms: number("Ends the command after this time; 600,000 by default."),
      lease,
    },
    required: ["command"],
    effect: "destroy",
    run: runCommand,
  },
  process_start: {
    description: "Start long work, such as a server, that outlives the call.",
    args: { command, cwd, name: text("A name that one running process has."), lease },
    required: ["command"],
    run: ({ calls, sandbox, args }) =>
      calls.json<Process>(
        "POST",
        `${sandbox}/processes`,
        pick(args, ["command", "cwd", "name"]),
        leaseOf(args),
      ),
  },
  process_list: {
    description: "List processes that run and those that exited lately.",
    args: {},
    effect: "read",
    run: ({ calls, sandbox }) => calls.json("GET", `${sandbox}/processes`),
  },
  process_log: {
    description: "Read the output of a process from a cursor on.",
    args: {
      process,
      after: number("The cursor; 0 is the beginning."),
      wait_ms: number("Waits that long for new output, at most 60,000."),
    },
    required: ["process"],
    effect: "read",
    run: readLog,
  },
  process_signal: {
    description: "Send a signal to a process and all its descendants.",
    args: {
      process,
      signal: { ...text("SIGTERM by default."), enum: ["SIGINT", "SIGTERM", "SIGKILL", "SIGHUP"] },
      lease,
    },
    required: ["process"],
    effect: "destroy",
    run: ({ calls, sandbox, args }) =>
      calls.json<Process>(
        "POST",
        `${sandbox}/processes/${segment(args.process)}/signal`,
        { signal: args.signal ?? "SIGTERM" },
        leaseOf(args),
      ),
  },
  file_read: {
    description: "Read a text file, or a part of it by bytes.",
    args: { path, offset: number("The first byte."), limit: number("Bytes, at most 200,000.") },
    required: ["path"],
    effect: "read",
    run: readFile,
  },
  file_write: {
    description: "Write a file completely; missing folders are made.",
    args: { path, content: text("The whole content."), lease },
    required: ["path", "content"],
    effect: "destroy",
    run: writeFile,
  },
  file_edit: {
    description: "Replace a text that occurs once in a file. Fails if the file changed meanwhile.",
    args: {
      path,
      old: text("The text to replace, with enough around it to occur once."),
      new: text("The new text."),
      lease,
    },
    required: ["path", "old", "new"],
    effect: "destroy",
    run: editFile,
  },
  file_list: {
    description: "List a folder.",
    args: { path, depth: number("1: only the folder itself.") },
    effect: "read",
    run: ({ calls, sandbox, args }) => {
      const query = new URLSearchParams({
        path: String(args.path ?? "."),
        depth: String(args.depth ?? 1),
        limit: "500",
      });
      return calls.json("GET", `${sandbox}/files/list?${query}`);
    },
  },
  file_search: {
    description: "Find lines that match a regular expression (grep -E) in files below a folder.",
    args: { pattern: text("An extended regular expression."), path, lease },
    required: ["pattern"],
    effect: "read",
    run: searchFiles,
  },
  port_open: {
    description: "Get an address by which others reach a server in the sandbox.",
    args: { port: number("The port on which the server listens.") },
    required: ["port"],
    run: ({ calls, sandbox, args }) => calls.json("POST", `${sandbox}/ports`, pick(args, ["port"])),
  },
  checkpoint_create: {
    description: "Save all files of a sandbox.",
    args: { name: text("A name for people."), lease },
    run: ({ calls, sandbox, args }) =>
      calls.json("POST", `${sandbox}/checkpoints`, pick(args, ["name"]), leaseOf(args)),
  },
  checkpoint_list: {
    description: "List the checkpoints of a sandbox, newest first.",
    args: {},
    effect: "read",
    run: ({ calls, sandbox }) => calls.json("GET", `${sandbox}/checkpoints`),
  },
  checkpoint_restore: {
    description: "Restart a sandbox with the files of a checkpoint. Later files are lost.",
    args: { checkpoint: text("The id of the checkpoint."), lease },
    required: ["checkpoint"],
    effect: "destroy",
    run: async ({ calls, sandbox, args }) => {
      const restore = `${sandbox}/checkpoints/${segment(args.checkpoint)}/restore`;
      return shown(await calls.json<Sandbox>("POST", restore, undefined, leaseOf(args)));
    },
  },
  lease_acquire: {
    description: "Get the exclusive right to change a sandbox, in the order of the queue.",
    args: {
      ttl_ms: number("Ends by itself after this time; 60,000 by default."),
      wait_ms: number("Waits that long, at most 25,000."),
    },
    run: ({ calls, sandbox, args }) =>
      calls.json("POST", `${sandbox}/lease`, {
        holder: "mcp",
        ttlMs: args.ttl_ms ?? 60_000,
        waitMs: args.wait_ms ?? 0,
      }),
  },
  lease_release: {
    description: "Give the lease back.",
    args: { lease },
    required: ["lease"],
    run: ({ calls, sandbox, args }) =>
      calls.json("DELETE", `${sandbox}/lease`, undefined, leaseOf(args)),
  },
  terminal_screen: {
    description: "Read the visible text of a terminal.",
    args: { terminal: text("The id of the terminal.") },
    required: ["terminal"],
    effect: "read",
    run: ({ calls, sandbox, args }) =>
      calls.json("GET", `${sandbox}/terminals/${segment(args.terminal)}/screen`),
  },
};

export function describeTools(): object[] {
  return Object.entries(tools).map(([name, { description, args, required = [], ...tool }]) => ({
    name,
    description,
    inputSchema: {
      type: "object",
      properties: {
        ...(tool.ofSandbox === false
          ? {}
          : { sandbox: text("The id of the sandbox; with the token of one it may be left out.") }),
        ...args,
      },
      required,
      additionalProperties: false,
    },
    annotations: {
      readOnlyHint: tool.effect === "read",
      destructiveHint: tool.effect === "destroy",
      openWorldHint: name === "run" || name === "process_start",
    },
  }));
}

function shown({ id, state, reason, createdAt, metadata }: Sandbox): object {
  return { sandbox: id, state, ...(reason === undefined ? {} : { reason }), createdAt, metadata };
}

export function leaseOf({ lease: token }: Record<string, unknown>): HeadersInit {
  return typeof token === "string" ? { "berth-lease": token } : {};
}

export function pick(args: Record<string, unknown>, names: string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => name in args).map((name) => [name, args[name]]));
}

export function segment(value: unknown): string {
  return encodeURIComponent(String(value));
}
