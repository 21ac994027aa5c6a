/**
 * Owns how plans and their members are named on a command line.
 */
import { memberKeySchema, planNameSchema } from "../../protocol/plan.ts";
import { required } from "../args/positional.ts";
import { Failure } from "../failure.ts";

export const planArgument = required("plan", "its name");

/** Before it becomes part of an address. */
export function checkPlan(name: string): string {
  return checked(planNameSchema.safeParse(name), `'${name}' cannot be the name of a plan`);
}

export function checkMember(key: string): string {
  return checked(memberKeySchema.safeParse(key), `'${key}' cannot be the name of a member`);
}

type Parsed = { success: boolean; data?: string; error?: { issues: { message: string }[] } };

function checked({ data, error }: Parsed, message: string): string {
  if (data !== undefined) return data;
  throw new Failure(message, {
    hint: `It ${error?.issues[0]?.message ?? "must be a name"}.`,
    code: "bad_usage",
  });
}
