/**
 * Parses a command line like a shell: commands in a row, words, quotes, variables, `>&2`.
 */

/** `when`: the required outcome of the previous command. */
export type SimpleCommand = { words: Word[]; toStderr: boolean; when: "always" | "ok" | "failed" };

/** A word: texts and names of variables. */
export type Word = (string | { name: string })[];

const token =
  /(?<space>[ \t]+)|(?<next>&&|\|\||;|\n)|(?<stderr>1?>&2)|'(?<single>[^']*)'|"(?<double>[^"]*)"|\$(?<name>[A-Za-z_]\w*|[$?])|\$\{(?<braced>[A-Za-z_]\w*)\}|(?<text>[^\s;&|'"$>]+|.)/gy;

const variable = /\$(?:([A-Za-z_]\w*|[$?])|\{([A-Za-z_]\w*)\})/g;

export function parseLine(line: string): SimpleCommand[] {
  const commands: SimpleCommand[] = [];
  let command: SimpleCommand = { words: [], toStderr: false, when: "always" };
  let word: Word | undefined;
  const endWord = () => {
    if (word !== undefined) command.words.push(word);
    word = undefined;
  };
  const add = (...pieces: Word) => {
    word = [...(word ?? []), ...pieces];
  };
  const endCommand = (when: SimpleCommand["when"]) => {
    endWord();
    if (command.words.length > 0) commands.push(command);
    command = { words: [], toStderr: false, when };
  };
  for (const { groups = {} } of line.matchAll(token)) {
    const { next, single, double, text } = groups;
    const name = groups.name ?? groups.braced;
    if (groups.space !== undefined) endWord();
    else if (next !== undefined) {
      endCommand(next === "&&" ? "ok" : next === "||" ? "failed" : "always");
    } else if (groups.stderr !== undefined) {
      endWord();
      command.toStderr = true;
    } else if (single !== undefined) add(single);
    else if (double !== undefined) add("", ...expandable(double));
    else if (name !== undefined) add({ name });
    else add(text ?? "");
  }
  endCommand("always");
  return commands;
}

function expandable(text: string): Word {
  const pieces: Word = [];
  let from = 0;
  for (const match of text.matchAll(variable)) {
    pieces.push(text.slice(from, match.index), { name: match[1] ?? match[2] ?? "" });
    from = match.index + match[0].length;
  }
  pieces.push(text.slice(from));
  return pieces;
}
