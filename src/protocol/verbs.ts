/** The table of verbs with its schemas. The Worker serves it, and /openapi.json describes it. */
import { verbRows } from "./verbs/rows.ts";
import * as schemas from "./verbs/schemas.ts";

export type { VerbRow } from "./verbs/row.ts";
export type { VerbName } from "./verbs/rows.ts";

export const verbs = verbRows(schemas);
