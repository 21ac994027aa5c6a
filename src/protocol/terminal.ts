/**
 * Schemas of terminals: pseudo-terminals that are used over a WebSocket. See internal/terminal-frames.ts for its
 * frames.
 */
import { z } from "zod";
import { argumentsFit, argumentsTooLong, argvSchema, cwdSchema } from "./fields/command.ts";
import { envSchema } from "./fields/env.ts";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";
import { endsWithLeaseSchema, handleSchema } from "./process.ts";

const size = {
  cols: z.int().min(1).max(limits.terminalColsMax),
  rows: z.int().min(1).max(limits.terminalRowsMax),
};

export const terminalCallSchema = z
  .strictObject({
    id: handleSchema
      .optional()
      .meta({ description: "Get or create: a repeated call returns the same terminal." }),
    cols: size.cols.default(80),
    rows: size.rows.default(24),
    cwd: cwdSchema.optional(),
    env: envSchema.optional(),
    argv: argvSchema.optional().meta({ description: "Default: a login shell." }),
    endsWithLease: endsWithLeaseSchema.optional(),
  })
  .refine(argumentsFit, argumentsTooLong)
  .meta({ id: "TerminalCall" });

export const terminalResizeSchema = z.strictObject(size).meta({ id: "TerminalResize" });

export const terminalSchema = z
  .strictObject({
    id: handleSchema,
    pid: z.int(),
    ...size,
    argv: z.array(z.string()),
    createdAt: z.iso.datetime(),
    viewers: z.int().meta({ description: "Connections that are attached now." }),
    offset: z.int().meta({ description: "Bytes of output so far." }),
    incarnation: z.string(),
  })
  .meta({ id: "Terminal" });

export const terminalsSchema = z
  .strictObject({ terminals: z.array(terminalSchema), nextCursor: z.null() })
  .meta({ id: "Terminals" });

export const terminalEndedSchema = z
  .strictObject({ id: handleSchema, ended: z.literal(true) })
  .meta({ id: "TerminalEnded" });

export const screenSchema = z
  .strictObject({
    text: z.string().meta({ description: "The visible lines, without trailing spaces." }),
    cols: z.int(),
    rows: z.int(),
    /** Column and row, both from 0. */
    cursor: z.strictObject({ x: z.int(), y: z.int() }),
    title: z.string(),
    alternate: z
      .boolean()
      .meta({ description: "The alternate screen of a full-screen program is visible." }),
    offset: z.int().meta({ description: "Bytes of output up to this screen." }),
  })
  .meta({ id: "Screen" });

export const connectQuerySchema = z.strictObject({
  /** The offset of output to continue from. */
  after: wholeNumber(0, Number.MAX_SAFE_INTEGER).optional(),
  /** A `viewer` cannot type; `writer` by default. */
  mode: z.enum(["writer", "viewer"]).default("writer"),
  /** Names the viewer: a new connection with the same id replaces the earlier one. */
  viewer: handleSchema.optional(),
});

export type ConnectQuery = z.infer<typeof connectQuerySchema>;
export type TerminalInput = z.input<typeof terminalCallSchema>;
export type TerminalCall = z.infer<typeof terminalCallSchema>;
export type TerminalSize = z.infer<typeof terminalResizeSchema>;
export type Terminal = z.infer<typeof terminalSchema>;
export type Terminals = z.infer<typeof terminalsSchema>;
export type TerminalEnded = z.infer<typeof terminalEndedSchema>;
export type Screen = z.infer<typeof screenSchema>;
