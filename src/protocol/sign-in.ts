/** Schemas of signing in from a browser: a ticket for one sign-in, and the session that it becomes. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { rightSchema } from "./rights.ts";

export const signInSchema = component("SignIn", {
  ticket: z.string().describe("Signs in once, at `/#ticket=…` of this address."),
  expiresAt: z.iso.datetime(),
});

export const signInCallSchema = z
  .strictObject({
    ticket: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, "must be a ticket of POST /v1/sign-ins")
      .optional()
      .describe("Used up by the call."),
    key: z.string().min(1).max(512).optional().describe("A key, in place of a ticket."),
  })
  .refine(({ ticket, key }) => (ticket === undefined) !== (key === undefined), {
    message: "needs either a ticket or a key",
    path: ["ticket"],
  })
  .meta({ id: "SignInCall" });

export const callerSchema = component("Caller", {
  tenant: z.string(),
  name: z.string().describe("Of the key: what it creates names it as the maker."),
  rights: z.array(rightSchema),
  expiresAt: z.iso.datetime().optional().describe("Absent for a key that does not expire."),
});

export type SignIn = z.infer<typeof signInSchema>;
export type CallerView = z.infer<typeof callerSchema>;
