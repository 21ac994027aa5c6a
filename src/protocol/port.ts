/** Schemas of ports: servers in a sandbox that others reach by an address with a token. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { queryNumber, wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";

const portMax = 65_535;

export const portNumberSchema = wholeNumber(1, portMax).describe("The port in the sandbox.");

export const pathPortSchema = queryNumber(1, portMax);

export const portCallSchema = component("PortCall", {
  port: portNumberSchema,
  wake: z
    .boolean()
    .default(false)
    .describe("Whether a request to the port may start the container."),
});

const portFields = {
  port: portNumberSchema,
  wake: z.boolean().describe("Whether a request may start the container."),
  createdAt: z.iso.datetime().describe("ISO 8601."),
};

export const portSchema = component("Port", {
  ...portFields,
  url: z
    .string()
    .describe(
      "An address with a host of its own, or where the installation has no such hosts the same as `pathUrl`. Everyone who knows it can use it.",
    ),
  pathUrl: z
    .string()
    .describe("The same as a path below Berth's own address, if wildcard hosts are not available."),
  token: z
    .string()
    .describe("The secret part of the address, shown only once; opening again replaces it."),
});

export const portsSchema = component("Ports", {
  ports: z.array(z.strictObject(portFields)),
  nextCursor: z.null(),
});

/** `<port>-<sandbox>-<token>`, as a label of a host name or a segment of a path. Public ports need no token. */
const labelPattern = new RegExp(
  `^([1-9]\\d{0,4})-([a-z][a-z0-9]{23})(?:-([a-z0-9]{${limits.portTokenChars}}))?$`,
);

/** `token` is empty in the address of a public port. */
export type PortAddress = { port: number; sandbox: string; token: string };

export function parsePortLabel(text: string): PortAddress | undefined {
  const [, port, sandbox, token = ""] = labelPattern.exec(text) ?? [];
  if (port === undefined || sandbox === undefined) return undefined;
  return Number(port) > portMax ? undefined : { port: Number(port), sandbox, token };
}

export function portLabel({ port, sandbox, token }: PortAddress): string {
  return `${port}-${sandbox}-${token}`;
}

export type PortInput = z.input<typeof portCallSchema>;
export type PortCall = z.infer<typeof portCallSchema>;
export type Port = z.infer<typeof portSchema>;
export type PortList = z.infer<typeof portsSchema>;
