/**
 * Writes the lines that a session's shell reads: a command, and the line that reports its end; and finds that report in
 * what the shell writes to its standard error, between other output.
 *
 * A session may define aliases and functions of any name. A backslash bypasses aliases, `builtin` bypasses functions. A
 * function that is itself called `builtin` is detected by the last line, which uses no word at all: it fails to open a
 * file, so that the shell prints the name of that file. (It opens it as a descriptor other than 0, for which the shell
 * would fork.)
 */

/** The paths that the shell opens as a command's streams. */
export type Streams = { stdin: string; stdout: string; stderr: string };

export type CommandEnd = { exitCode: number; cwd: string };

/** PATH_MAX; the variable PWD can be longer. */
const cwdCharsMax = 4096;
/** Longer than any report; older text was other output. */
const textCharsMax = 64 * 1024;
const wordBytes = 16;

/** The first lines of a new shell. */
export function setupLines(word: string): string {
  return `\\builtin shopt -s expand_aliases\n${endLines(word)}`;
}

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
function endLines(word: string): string {
  const fields = `"$?" "\${PWD+\${PWD:0:${cwdCharsMax}}}"`;
  const report = `\\builtin printf '\\0${word}\\0%s\\0%s\\0' ${fields} >&2`;
  return `\\builtin eval ${shellQuote(report)}\n9<${unresponsivePath(word)} || 9</dev/null\n`;
}

/** A file that does not exist. If the shell prints its name without a report, it no longer runs our lines. */
function unresponsivePath(word: string): string {
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

/**
 * Generates a word that nobody can guess: letters and digits, which mean the same in a path and in a shell's line. It
 * does not begin with a digit, which would become part of an escape before it.
 */
export function randomWord(): string {
  return `w${Buffer.from(crypto.getRandomValues(new Uint8Array(wordBytes))).toString("hex")}`;
}

export class EndReader {
  #text = "";
  #awaited: { word: string; resolve: (end: CommandEnd | "unresponsive") => void } | undefined;

  /** Resolves with "unresponsive" if the shell got past the command without running the line that reports its end. */
  waitFor(word: string): Promise<CommandEnd | "unresponsive"> {
    this.#text = "";
    return new Promise((resolve) => {
      this.#awaited = { word, resolve };
    });
  }

  take(bytes: Uint8Array): void {
    if (this.#awaited === undefined) return;
    this.#text = (this.#text + Buffer.from(bytes).toString("latin1")).slice(-textCharsMax);
    const { word, resolve } = this.#awaited;
    const end = parseEnd(this.#text, word);
    if (end === undefined) return;
    this.#awaited = undefined;
    this.#text = "";
    resolve(end);
  }
}

function parseEnd(text: string, word: string): CommandEnd | "unresponsive" | undefined {
  const head = `\0${word}\0`;
  const start = text.indexOf(head);
  if (start < 0) return text.includes(`${unresponsivePath(word)}:`) ? "unresponsive" : undefined;
  const [status, cwd, rest] = text.slice(start + head.length).split("\0", 3);
  if (cwd === undefined || rest === undefined) return undefined;
  return { exitCode: Number(status), cwd: Buffer.from(cwd, "latin1").toString("utf8") };
}
