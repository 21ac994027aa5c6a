/**
 * Writes the lines that a session's shell reads: a command, and the line that reports its end.
 *
 * A session may define aliases and functions of any name. A backslash bypasses aliases, `builtin` bypasses functions. A
 * function that is itself called `builtin` is detected by the last line, which uses no word at all: it fails to open a
 * file, so that the shell prints the name of that file. (It opens it as a descriptor other than 0, for which the shell
 * would fork.)
 */

/** The paths that the shell opens as a command's streams. */
export type Streams = { stdin: string; stdout: string; stderr: string };

/** PATH_MAX; the variable PWD can be longer. */
const cwdCharsMax = 4096;

export const setupLines = "\\builtin shopt -s expand_aliases\n";

/**
 * The shell reads the word only when the command is over, so that the command cannot know it. `status` is what `$?` is
 * for the command: what the previous one left.
 */
export function commandLines(
  command: string,
  word: string,
  { streams, status }: { streams: Streams; status: number },
): string {
  const { stdin, stdout, stderr } = streams;
  const redirected = `<${shellQuote(stdin)} >${shellQuote(stdout)} 2>${shellQuote(stderr)}`;
  return `${statusLine(status)}\\builtin eval ${shellQuote(command)} ${redirected}\n${endLines(word)}`;
}

/** The report stands between NULs, which no trace of this line can show. It uses every builtin that the next command needs. */
export function endLines(word: string): string {
  const fields = `"$?" "\${PWD+\${PWD:0:${cwdCharsMax}}}"`;
  const report = `\\builtin printf '\\0${word}\\0%s\\0%s\\0' ${fields} >&2`;
  return `\\builtin eval ${shellQuote(report)}\n9<${unresponsivePath(word)} || 9</dev/null\n`;
}

/** A file that does not exist. If the shell prints its name without a report, it no longer runs our lines. */
export function unresponsivePath(word: string): string {
  return `/${word}.`;
}

export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Sets `$?` in forms that neither `set -e` nor an ERR trap counts as a failure. */
function statusLine(status: number): string {
  if (status === 0) return "";
  return status === 1 ? "! 9</dev/null\n" : `(\\builtin exit ${status}) && 9</dev/null\n`;
}
