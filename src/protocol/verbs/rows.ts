/** All rows of the table of verbs, as a function of the schemas: the Worker builds it with them, the SDK without. */
import { accessRows, portRows } from "./access.ts";
import { checkpointRows } from "./checkpoints.ts";
import { directoryRows } from "./directory.ts";
import { fileRows } from "./files.ts";
import { imageRows } from "./images.ts";
import { keyRows } from "./keys.ts";
import { leaseRows } from "./leases.ts";
import { metadataRows } from "./metadata.ts";
import { planRows } from "./plans.ts";
import { processRows } from "./processes.ts";
import type { Schemas } from "./row.ts";
import { sandboxRows } from "./sandboxes.ts";
import { sessionRows } from "./sessions.ts";
import { settingsRows } from "./settings.ts";
import { signInRows } from "./sign-ins.ts";
import { templateRows } from "./templates.ts";
import { terminalRows } from "./terminals.ts";

export const verbRows = (schemas: Schemas) => ({
  ...sandboxRows(schemas),
  ...leaseRows(schemas),
  ...metadataRows(schemas),
  ...settingsRows(schemas),
  ...accessRows(schemas),
  ...directoryRows(schemas),
  ...keyRows(schemas),
  ...signInRows(schemas),
  ...checkpointRows(schemas),
  ...imageRows(schemas),
  ...templateRows(schemas),
  ...portRows(schemas),
  ...processRows(schemas),
  ...sessionRows(schemas),
  ...terminalRows(schemas),
  ...fileRows(schemas),
  ...planRows(schemas),
});

export type VerbRows = ReturnType<typeof verbRows>;
export type VerbName = keyof VerbRows;
