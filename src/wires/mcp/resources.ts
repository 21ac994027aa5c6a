/** Files and logs as resources: `berth://<sandbox>/files/<path>` and `berth://<sandbox>/processes/<id>/log`. */
import type { Processes } from "../../protocol/process.ts";
import type { ApiCalls } from "../api-calls.ts";
import { readFile } from "./file-tools.ts";
import { BadParams, type ToolCall } from "./messages.ts";
import { readLog } from "./run.ts";

const never = new AbortController().signal;

export const resourceTemplates = [
  {
    uriTemplate: "berth://{sandbox}/files/{+path}",
    name: "file",
    description: "A file of a sandbox, by its absolute path.",
  },
  {
    uriTemplate: "berth://{sandbox}/processes/{process}/log",
    name: "log",
    description: "The output of a process.",
    mimeType: "text/plain",
  },
];

/** With the token of a sandbox: the logs of its processes. */
export async function listResources(calls: ApiCalls): Promise<object[]> {
  const sandbox = calls.caller.token?.sandbox;
  if (sandbox === undefined) return [];
  const path = `/v1/sandboxes/${sandbox}/processes`;
  const { processes } = await calls.json<Processes>("GET", path);
  return processes.map(({ id, name, command, argv = [] }) => ({
    uri: `berth://${sandbox}/processes/${id}/log`,
    name: name ?? command ?? argv.join(" "),
    mimeType: "text/plain",
  }));
}

export async function readResource(calls: ApiCalls, uri: string): Promise<object> {
  const match = /^berth:\/\/([a-z0-9]{24})\/(?:files(\/.*)|processes\/([\w.-]+)\/log)$/.exec(uri);
  if (match === null) throw new BadParams("uri: no such resource; the templates show the forms");
  const [, sandbox = "", path, process] = match;
  const args = path === undefined ? { process } : { path: decodeURIComponent(path) };
  const call: ToolCall = {
    ...{ calls, args, key: undefined, signal: never, sandbox: `/v1/sandboxes/${sandbox}` },
    progress() {},
  };
  const read = await (path === undefined ? readLog(call) : readFile(call));
  const { output, content } = read as { output?: string; content?: string };
  return { contents: [{ uri, mimeType: "text/plain", text: output ?? content ?? "" }] };
}
