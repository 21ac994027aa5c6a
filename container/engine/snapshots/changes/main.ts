/**
 * Owns the program that compares two saved workspaces: `<newer> <most paths listed> [<older>]` in, one JSON out.
 * A program of its own, because files may be closed to the engine's user, and looking at millions keeps a thread busy.
 */
import { ChangeList } from "../../../../src/protocol/internal/change-list.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { Sameness } from "./same.ts";
import { Walk } from "./walk.ts";

const [newer = "", listMax = "", older] = process.argv.slice(2);
const list = new ChangeList(Number(listMax));
new Walk({ older, newer }, { list, sameness: new Sameness(limits.changesReadBytesMax) }).run();
process.stdout.write(JSON.stringify(list.done()));
