/** Calls that the Docker tests repeat: a command that succeeds, a state, a checkpoint. */
import { expect } from "vitest";
import type { Answer, Server } from "../system/server.ts";

type Body = Answer["body"];

export function callsOf(server: () => Server) {
  const call = (method: string, id: string, rest = "", body?: unknown) =>
    server().call(method, `/v1/sandboxes/${id}${rest}`, body);
  return {
    call,
    viewOf: async (id: string): Promise<Body> => (await call("GET", id)).body,
    /** Returns the output of a command that must succeed. */
    async outputOf(id: string, command: string): Promise<string> {
      const { body } = await server().exec(id, command);
      expect(body, command).toMatchObject({ exitCode: 0, stderr: "" });
      return String(body.stdout);
    },
    async checkpoint(id: string, name: string): Promise<string> {
      const { status, body } = await call("POST", id, "/checkpoints", { name });
      expect(status, JSON.stringify(body)).toBe(201);
      return String(body.id);
    },
    /** Returns the states that it went through, from its events. */
    async states(id: string): Promise<unknown[]> {
      const { body } = await call("GET", id, "/events?limit=1000");
      const { events } = body as unknown as { events: { event: Record<string, unknown> }[] };
      const states = events.filter(({ event }) => event.type === "state");
      return states.map(({ event }) => event.state);
    },
  };
}
