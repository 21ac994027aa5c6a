/** The types of a verb in code, derived from its row: what its method takes and returns. */
import type { z } from "zod";
import type { GateOptions, IdempotentOptions } from "./options.ts";
import type { VerbRow } from "./row.ts";
import type { VerbName, VerbRows } from "./rows.ts";

/** The path parameters that are arguments: all but the id of the sandbox. */
export type Params<Path> = Path extends `${string}/:${infer Name}/${infer Rest}`
  ? [...Param<Name>, ...Params<`/${Rest}`>]
  : Path extends `${string}/:${infer Name}`
    ? Param<Name>
    : [];

type Param<Name> = Name extends "id" ? [] : Name extends "port" ? [port: number] : [id: string];

/** The field that is an argument of its own. */
export type Argument<Row> = Row extends { argument: infer Name extends string }
  ? Row extends { query: infer Query extends z.ZodType }
    ? [argument: Field<z.output<Query>, Name>]
    : Row extends { body: infer Body extends z.ZodType }
      ? [argument: Field<z.output<Body>, Name>]
      : never
  : [];

type Field<Fields, Name> = Name extends keyof Fields ? Fields[Name] : never;

export type Body<Row> = Row extends { argument: string }
  ? []
  : Row extends { body: infer Schema }
    ? Schema extends z.ZodType
      ? Row extends { optionalBody: true }
        ? [call?: z.input<Schema>]
        : [call: z.input<Schema>]
      : [bytes: Uint8Array]
    : [];

/** Fields of the query and what the headers carry. */
export type Options<Row> = QueryOptions<Row> & BodyOptions<Row> & HeaderOptions<Row>;

/** The other fields of a body, where one of them is an argument of its own. */
type BodyOptions<Row> = Row extends { query: unknown }
  ? unknown
  : Row extends { argument: infer Name extends string; body: infer Body extends z.ZodType }
    ? Partial<Omit<z.input<Body>, Name>>
    : unknown;

type QueryOptions<Row> = Row extends { query: infer Query extends z.ZodType }
  ? {
      [Name in Exclude<keyof z.output<Query>, Positional<Row>>]?:
        | InCode<z.output<Query>[Name]>
        | undefined;
    }
  : unknown;

type Positional<Row> = Row extends { argument: infer Name } ? Name : never;

/** A query says yes and no as `1` and `0`. */
type InCode<Value> = Value extends "0" | "1" ? boolean : Value;

type HeaderOptions<Row> = Row extends { idempotent: true }
  ? IdempotentOptions
  : Row extends { gated: true }
    ? GateOptions
    : unknown;

type OptionsArgument<Row> = unknown extends Options<Row> ? [] : [options?: Flat<Options<Row>>];

/** One object type instead of an intersection: the declarations of the package show it in full. */
type Flat<Type> = Type extends infer Given ? { [Name in keyof Given]: Given[Name] } : never;

export type Result<Row> = Row extends { responses: infer Responses }
  ? { [Status in keyof Responses]: Content<Responses[Status]> }[keyof Responses]
  : never;

type Content<Response> = Response extends { schema: infer Schema }
  ? Schema extends z.ZodType
    ? z.output<Schema>
    : Schema extends "stream"
      ? AsyncIterable<Uint8Array>
      : undefined
  : never;

export type Verb<Row> = Row extends VerbRow
  ? (
      ...args: [...Params<Row["path"]>, ...Argument<Row>, ...Body<Row>, ...OptionsArgument<Row>]
    ) => Promise<Result<Row>>
  : never;

/** The name of a verb's method. */
export type CallName<Name extends VerbName> = Name extends VerbName
  ? VerbRows[Name] extends { call: infer Call extends string }
    ? Call
    : Name
  : never;
