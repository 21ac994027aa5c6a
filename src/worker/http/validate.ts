/** Checks the parts of a call. The error names the field that does not fit, the value and what is expected. */
import { z } from "zod";
import { BerthError } from "../../protocol/errors.ts";

export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.infer<Schema> {
  const result = schema.safeParse(value, { error: expectation, reportInput: true });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = issue?.path ?? [];
  if (issue?.code === "unrecognized_keys") {
    const [name = ""] = issue.keys;
    const known =
      path.length === 0 && schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
    throw unknownField([...path, name].join("."), closest(name, known));
  }
  const field = path.join(".") || "body";
  const message = issue === undefined ? "is not valid" : `${issue.message}${given(issue)}`;
  throw new BerthError("bad_request", `${field}: ${message}`, { hint, facts: { field } });
}

const hint = "All calls are described in /openapi.json.";

function unknownField(field: string, meant: string | undefined): BerthError {
  return new BerthError("bad_request", `${field}: is not a field of this call`, {
    hint: meant === undefined ? hint : `Did you mean \`${meant}\`? ${hint}`,
    facts: { field },
  });
}

/** Checks a value that is named by something else than its place in a body: a header, an option or a part of the path. */
export function validateField<Schema extends z.ZodType>(
  field: string,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const result = schema.safeParse(value, { error: expectation });
  if (result.success) return result.data;
  throw invalidField(field, result.error.issues[0]?.message ?? "is not valid");
}

export function invalidField(field: string, message: string): BerthError {
  return new BerthError("bad_request", `${field}: ${message}`, { facts: { field } });
}

const kinds: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};

/** What a schema without a message of its own expects. */
function expectation(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined
        ? "is missing"
        : `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be one of ${issue.values.join(", ")}`;
    case "too_small":
      return bound(issue.origin, "at least", issue.minimum);
    case "too_big":
      return bound(issue.origin, "at most", issue.maximum);
    case "invalid_format":
      return `must have the form ${issue.pattern ?? issue.format}`;
    case "invalid_key":
      return issue.issues[0]?.message ?? "is not a valid name";
    default:
      return "is not valid";
  }
}

function bound(origin: string, which: string, value: number | bigint): string {
  if (origin === "string") return `must have ${which} ${value} characters`;
  return origin === "array" ? `must have ${which} ${value} entries` : `must be ${which} ${value}`;
}

const shownCharsMax = 40;

/** The value that was given, if it is short and the message is about this value alone. */
function given({ code, input }: z.core.$ZodIssue): string {
  if (code === "custom" || code === "invalid_union" || input === undefined) return "";
  if (Array.isArray(input)) return code === "invalid_type" ? ", not a list" : "";
  if (typeof input === "object" && input !== null) return ", not an object";
  const text = JSON.stringify(input);
  return text.length > shownCharsMax ? "" : `, not ${text}`;
}

/** The known name that the caller probably meant: one that begins alike, or differs by two letters at most. */
function closest(name: string, known: string[]): string | undefined {
  const wanted = name.toLowerCase().replaceAll(/[_-]/g, "");
  const candidates = known.map((candidate) => {
    const other = candidate.toLowerCase();
    const isBeginning = wanted.length > 2 && (other.startsWith(wanted) || wanted.startsWith(other));
    return { candidate, distance: isBeginning ? 0 : editDistance(wanted, other) };
  });
  const [best] = candidates.sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= 2 ? best.candidate : undefined;
}

/** How many letters must be inserted, removed or replaced. Names longer than any field are not compared. */
function editDistance(from: string, to: string): number {
  if (from.length > 40) return from.length;
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (other === letter ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
