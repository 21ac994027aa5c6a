/**
 * The program that compares two saved workspaces: `<newer> <listMax> [<older>]` as arguments, one JSON document on
 * stdout. It is a separate program because the engine's user may not read all files, and because walking millions of
 * files blocks a thread.
 */
import { ChangeList } from "../../../../src/protocol/internal/change-list.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { EntryComparer } from "./compare.ts";
import { TreeWalk } from "./walk.ts";

const [newer = "", listMax = "", older] = process.argv.slice(2);
const list = new ChangeList(Number(listMax));
new TreeWalk({ older, newer }, list, new EntryComparer(limits.changesReadBytesMax)).run();
process.stdout.write(JSON.stringify(list.result()));
