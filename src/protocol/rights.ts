/** The rights of keys and tokens, and the schemas of tokens and tickets. Only the Worker can sign tokens. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";

export const rights = ["read", "exec", "files", "terminal", "lease", "lifecycle", "admin"] as const;

export const rightSchema = z.enum(rights);

export const tokenCallSchema = component("TokenCall", {
  rights: z
    .array(rightSchema)
    .min(1)
    .max(rights.length)
    .refine((list) => new Set(list).size === list.length, "must name each right once")
    .describe("What the token allows."),
  ttlMs: wholeNumber(limits.tokenTtlMinMs, limits.tokenTtlMaxMs)
    .default(limits.tokenTtlMs)
    .describe("Milliseconds until the token expires."),
});

export const tokenSchema = component("Token", {
  token: z.string().describe("Use it like a key; valid for this sandbox only."),
  rights: z.array(rightSchema).describe("What the token allows."),
  expiresAt: z.iso.datetime().describe("ISO 8601."),
});

export const connectTicketSchema = component("ConnectTicket", {
  ticket: z.string().describe("Opens one WebSocket, in `?ct=` or as a subprotocol."),
  expiresAt: z.iso.datetime(),
});

export type Right = z.infer<typeof rightSchema>;
export type TokenCall = z.infer<typeof tokenCallSchema>;
export type Token = z.infer<typeof tokenSchema>;
export type ConnectTicket = z.infer<typeof connectTicketSchema>;

/** The caller, as the Worker has authenticated it; the object checks the tenant and the generation. */
export type Caller = {
  tenant: string;
  rights: readonly Right[];
  /** For a key: its name, or the beginning of its digest if it has none. */
  key?: string;
  /** The id of a key that can be removed while the server runs; for a token, of the key that created it. */
  keyId?: string;
  /** For a token: the sandbox it is valid for, and the generation it was created in. */
  token?: { sandbox: string; generation: number };
};
