/**
 * Makes text of a server or a sandbox safe to print in a line of the command: it moves no cursor, changes no colour,
 * reorders no text and begins no line that looks like the command's own.
 */
import { stripVTControlCharacters } from "node:util";

const lineBreaks = /[\t-\r\u0085\u2028\u2029]+/g;
const unprintable = /[\p{Cc}\p{Bidi_Control}]/gu;
/** What `JSON.stringify` leaves as it is, although terminals obey it. */
const unescaped = /[\u007f-\u009f\u2028\u2029\p{Bidi_Control}]/gu;

/** Escape sequences are left out, line ends and tabs become a space, and other control characters become visible. */
export function toPlainLine(text: string): string {
  return stripVTControlCharacters(text).replace(lineBreaks, " ").replace(unprintable, "\ufffd");
}

/** The same document: control characters can only be in its strings, where they are written as escapes. */
export function toPlainJson(value: unknown): string {
  return JSON.stringify(value).replace(
    unescaped,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
