/**
 * Owns what the stories of real containers say again and again: a command that succeeds, a state, a checkpoint.
 * Does not own what they prove.
 */
import { expect } from "vitest";
import type { Answer, Server } from "../system/server.ts";

type Body = Answer["body"];

export function callsOf(server: () => Server) {
  const call = (method: string, id: string, rest = "", body?: unknown) =>
    server().call(method, `/v1/sandboxes/${id}${rest}`, body);
  return {
    call,
    told: async (id: string): Promise<Body> => (await call("GET", id)).body,
    /** What a command says that succeeds. */
    async said(id: string, command: string): Promise<string> {
      const { body } = await server().exec(id, command);
      expect(body, command).toMatchObject({ exitCode: 0, stderr: "" });
      return String(body.stdout);
    },
    async checkpoint(id: string, name: string): Promise<string> {
      const { status, body } = await call("POST", id, "/checkpoints", { name });
      expect(status, JSON.stringify(body)).toBe(201);
      return String(body.id);
    },
    /** Of its events: which states it went through. */
    async states(id: string): Promise<unknown[]> {
      const { body } = await call("GET", id, "/events?limit=1000");
      const { events } = body as unknown as { events: { event: Record<string, unknown> }[] };
      const states = events.filter(({ event }) => event.type === "state");
      return states.map(({ event }) => event.state);
    },
  };
}
