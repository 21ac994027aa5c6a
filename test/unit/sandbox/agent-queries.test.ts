/** The agent reads from a query what the object has checked and written. */
import { expect, test } from "vitest";
import type { z } from "zod";
import {
  readFileQuery,
  readListQuery,
  readPutQuery,
  readRemoveQuery,
  readWatchQuery,
} from "../../../container/agent/files/query.ts";
import { readLogsQuery, readStdinQuery } from "../../../container/agent/processes/query.ts";
import { type Query, writeQuery } from "../../../src/objects/sandbox/agent/agent-client.ts";
import {
  fileQuerySchema,
  listQuerySchema,
  putQuerySchema,
  removeQuerySchema,
  watchQuerySchema,
} from "../../../src/protocol/file.ts";
import { logsQuerySchema, stdinQuerySchema } from "../../../src/protocol/process.ts";

type Case = [z.ZodType, (query: URLSearchParams) => unknown, Record<string, string>[]];

const path = "a b+ü&=%/c";
const cases: Record<string, Case> = {
  file: [fileQuerySchema, readFileQuery, [{ path }, { path, session: "s1" }]],
  put: [putQuerySchema, readPutQuery, [{ path }, { path, mkdirs: "1", mode: "0755" }]],
  remove: [removeQuerySchema, readRemoveQuery, [{ path }, { path, recursive: "true" }]],
  list: [listQuerySchema, readListQuery, [{}, { path, depth: "3", limit: "7", cursor: "YQ" }]],
  watch: [watchQuerySchema, readWatchQuery, [{}, { path, recursive: "0" }]],
  logs: [
    logsQuerySchema,
    readLogsQuery,
    [{}, { after: "9007199254740991", follow: "1" }, { offset: "0", stream: "stderr" }],
  ],
  stdin: [stdinQuerySchema, readStdin, [{}, { offset: "3", eof: "1" }]],
};

test.each(Object.entries(cases))(
  "[X20] the agent reads from a query what its object has checked: %s",
  (_, [schema, read, queries]) => {
    for (const query of queries) {
      const checked = schema.parse(query);
      const written = writeQuery(checked as Query);
      expect(read(new URLSearchParams(written))).toEqual(checked);
    }
  },
);

function readStdin(query: URLSearchParams) {
  const { offset, eof } = readStdinQuery(query);
  return { ...(offset === undefined ? {} : { offset }), eof: eof ? "1" : "0" };
}
