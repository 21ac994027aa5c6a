/**
 * Owns the calls and answers of ports: servers in a sandbox that others may reach by an address with a token.
 */
import { z } from "zod";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";

const portMax = 65_535;

export const portNumberSchema = z.int().min(1).max(portMax);

export const pathPortSchema = wholeNumber(1, portMax);

export const portCallSchema = z
  .strictObject({
    port: portNumberSchema,
    wake: z
      .boolean()
      .default(false)
      .meta({ description: "Whether a visitor may start the container." }),
  })
  .meta({ id: "PortCall" });

const listed = { port: portNumberSchema, wake: z.boolean(), createdAt: z.iso.datetime() };

export const portSchema = z
  .strictObject({
    ...listed,
    url: z.string().meta({ description: "A host of its own. Whoever has it may visit." }),
    pathUrl: z
      .string()
      .meta({ description: "The same below a path, for where hosts cannot be had." }),
    token: z.string().meta({ description: "Shown this once. A new one ends it." }),
  })
  .meta({ id: "Port" });

export const portsSchema = z
  .strictObject({ ports: z.array(z.strictObject(listed)), nextCursor: z.null() })
  .meta({ id: "Ports" });

/** `<port>-<sandbox>-<token>`: one label of a host, or one segment of a path. */
const label = new RegExp(
  `^([1-9]\\d{0,4})-([a-z][a-z0-9]{23})-([a-z0-9]{${limits.portTokenChars}})$`,
);

export type PortAddress = { port: number; sandbox: string; token: string };

export function readPortLabel(text: string): PortAddress | undefined {
  const [, port, sandbox, token] = label.exec(text) ?? [];
  if (port === undefined || sandbox === undefined || token === undefined) return undefined;
  return Number(port) > portMax ? undefined : { port: Number(port), sandbox, token };
}

export function portLabel({ port, sandbox, token }: PortAddress): string {
  return `${port}-${sandbox}-${token}`;
}

export type PortInput = z.input<typeof portCallSchema>;
export type PortCall = z.infer<typeof portCallSchema>;
export type Port = z.infer<typeof portSchema>;
export type PortList = z.infer<typeof portsSchema>;
