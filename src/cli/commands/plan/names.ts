/** Checks names of plans and members given on the command line. */
import { memberKeySchema, planNameSchema } from "../../../protocol/plan.ts";
import { required } from "../../args/option.ts";
import { Failure } from "../../failure.ts";

export const planArgument = required("plan", "Name of the plan");

/** Checked before the name becomes part of a URL. */
export function checkPlanName(name: string): string {
  return requireValid(planNameSchema.safeParse(name), `'${name}' is not a valid name of a plan.`);
}

export function checkMemberName(key: string): string {
  return requireValid(memberKeySchema.safeParse(key), `'${key}' is not a valid name of a member.`);
}

type Parsed = { success: boolean; data?: string; error?: { issues: { message: string }[] } };

function requireValid({ data, error }: Parsed, message: string): string {
  if (data !== undefined) return data;
  throw new Failure(message, {
    hint: `The name ${error?.issues[0]?.message ?? "is invalid"}.`,
    code: "bad_usage",
  });
}
