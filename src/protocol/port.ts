/**
 * Owns the calls and answers of ports: servers in a sandbox that others may reach by an address with a token.
 */
import { z } from "zod";

export const portNumberSchema = z.int().min(1).max(65535);

export const portCallSchema = z
  .strictObject({
    port: portNumberSchema,
    wake: z
      .boolean()
      .default(false)
      .meta({ description: "Whether a visitor may start the container." }),
  })
  .meta({ id: "PortCall" });

export const portSchema = z
  .strictObject({
    port: portNumberSchema,
    url: z.string().meta({ description: "A host of its own." }),
    pathUrl: z
      .string()
      .meta({ description: "The same below a path, for where hosts cannot be had." }),
    token: z.string(),
    wake: z.boolean(),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: "Port" });

export const portsSchema = z
  .strictObject({ ports: z.array(portSchema), nextCursor: z.null() })
  .meta({ id: "Ports" });

export type PortInput = z.input<typeof portCallSchema>;
export type PortCall = z.infer<typeof portCallSchema>;
export type Port = z.infer<typeof portSchema>;
export type Ports = z.infer<typeof portsSchema>;
