/** Objects of the API that /openapi.json describes under a name of their own. */
import { z } from "zod";

export function component<const Shape extends z.ZodRawShape>(id: string, shape: Shape) {
  return z.strictObject(shape).meta({ id });
}
