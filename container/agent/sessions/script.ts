/**
 * Owns the words that are written to a session's shell: a command, and how its end is told.
 * Does not own the channels that carry them (shell.ts).
 *
 * What a session defines may bear any name. A backslash keeps aliases out, `builtin` functions; a session that makes
 * a function called `builtin` itself is found out by the last line, which has no word at all: it fails to open a
 * file, and so the shell says the name of that file. (As any descriptor but its own input: for that it would fork.)
 */

/** Where a command's streams are; each is opened by its name. */
export type Streams = { stdin: string; stdout: string; stderr: string };

/** PATH_MAX; a variable can be longer. */
const cwdCharsMax = 4096;

export const firstWords = "\\builtin shopt -s expand_aliases\n";

/**
 * The word stands in lines that the shell reads only when the command is over. `status` is what `$?` is for the
 * command: what the one before it left.
 */
export function commandLines(
  command: string,
  word: string,
  { streams, status }: { streams: Streams; status: number },
): string {
  const { stdin, stdout, stderr } = streams;
  const redirected = `<${quoted(stdin)} >${quoted(stdout)} 2>${quoted(stderr)}`;
  return `${statusLine(status)}\\builtin eval ${quoted(command)} ${redirected}\n${endLines(word)}`;
}

/** Between NULs, which no trace of this line can show; by all the builtins that the next command needs too. */
export function endLines(word: string): string {
  const told = `"$?" "\${PWD+\${PWD:0:${cwdCharsMax}}}"`;
  const tell = `\\builtin printf '\\0${word}\\0%s\\0%s\\0' ${told} >&2`;
  return `\\builtin eval ${quoted(tell)}\n9<${deafPath(word)} || 9</dev/null\n`;
}

/** A file that is not there. Said without the end having been told: the shell no longer does what it is told. */
export function deafPath(word: string): string {
  return `/${word}.`;
}

export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** In forms that neither `set -e` nor a trap of ERR counts as a failure. */
function statusLine(status: number): string {
  if (status === 0) return "";
  return status === 1 ? "! 9</dev/null\n" : `(\\builtin exit ${status}) && 9</dev/null\n`;
}
