/**
 * Owns the rights that a key or a token may have, and the calls that give tokens and tickets.
 * Does not own signing: only the door has the secret.
 */
import { z } from "zod";
import { limits } from "./limits.ts";

export const rights = ["read", "exec", "files", "terminal", "lease", "lifecycle", "admin"] as const;

export const rightSchema = z.enum(rights);

export const tokenCallSchema = z
  .strictObject({
    rights: z
      .array(rightSchema)
      .min(1)
      .max(rights.length)
      .refine((list) => new Set(list).size === list.length, "must name each right once"),
    ttlMs: z.int().min(limits.tokenTtlMinMs).max(limits.tokenTtlMaxMs).default(limits.tokenTtlMs),
  })
  .meta({ id: "TokenCall" });

export const tokenSchema = z
  .strictObject({
    token: z.string().meta({ description: "Goes where a key goes; good for this sandbox only." }),
    rights: z.array(rightSchema),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: "Token" });

export const connectTicketSchema = z
  .strictObject({
    ticket: z.string().meta({ description: "For one WebSocket, in `?ct=` or as a subprotocol." }),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: "ConnectTicket" });

export type Right = z.infer<typeof rightSchema>;
export type TokenCall = z.infer<typeof tokenCallSchema>;
export type Token = z.infer<typeof tokenSchema>;
export type ConnectTicket = z.infer<typeof connectTicketSchema>;

/** Who calls, as the door has found out; the object checks the rest. */
export type Caller = {
  tenant: string;
  rights: readonly Right[];
  /** Of a key: the beginning of its digest. */
  key?: string;
  /** Of a token: the sandbox that it is good for, and the generation that it was made in. */
  token?: { sandbox: string; generation: number };
};
