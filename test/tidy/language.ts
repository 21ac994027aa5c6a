/**
 * Finds words and sentence forms that the project does not use, so that the code keeps one vocabulary.
 * docs/design/glossary.md has the words it does use.
 */
import { isCode, type Source } from "./sources.ts";

type Form = { what: string; pattern: RegExp; where?: (source: Source) => boolean };

const isDecision = ({ path }: Source) => path.startsWith("docs/decisions/");
const isTidy = ({ path }: Source) => path.startsWith("test/tidy/language");
const isProse = (source: Source) => isCode(source) || source.path.endsWith(".md");

/** Forms of sentences, in code and docs. */
const sentences: Form[] = [
  { what: "a header of the form `Owns …`", pattern: /(?:\/\*\*|^ \*|\/\/) Owns\b/gm },
  { what: "`Does not own`", pattern: /\bDoes not own\b|\bnor does it own\b/g },
  { what: "a comment that begins with `Of`", pattern: /(?:\/\*\*|^\s*\*|\/\/) Of (?!course)/gm },
  { what: "`whoever` or `whom`", pattern: /\b(?:whoever|whomever|whom|whosoever)\b/gi },
  { what: "`he` for a call or a process", pattern: /\b(?:he|him|his|himself)\b/g },
  { what: "`told` or `untold`", pattern: /\b(?:un)?told\b/gi },
  { what: "`anew`", pattern: /\banew\b/gi },
  { what: "`beside`", pattern: /\bbeside\b/gi },
  { what: "`let go`", pattern: /\b(?:let|lets|letting) go\b|\blets? it go\b/gi },
  { what: "`goes on`", pattern: /\b(?:goes|went|gone) on\b/gi },
  { what: "`stands in`", pattern: /\bstands in\b/gi },
  { what: "`comes to nothing`", pattern: /\b(?:come|comes|came) to nothing\b/gi },
  { what: "`the door`", pattern: /\b[Tt]he doors?\b/g },
];

const names = (words: string) =>
  new RegExp(
    `\\b(?:const|let|function|class|interface|type)\\s+(?:${words})\\b|[(,{]\\s*(?:${words})\\??\\s*(?:[:,)}]|=>)(?=.*(?:=>|\\{\\s*$))`,
    "gm",
  );

/** Names that say nothing, or that mean something else in the field. */
const identifiers: Form[] = [
  {
    what: "a name that says nothing",
    pattern: names(
      "told|look|around|Around|named|Named|whole|one|gone|taken|again|ours|theirs|whose|asked|Asked|Asks|at",
    ),
    where: isCode,
  },
  {
    what: "an old name",
    pattern:
      /\b(?!outlives?\b)(?:[a-z]\w*)?(?:[Dd]oor|[Ss]eat|[Ee]ntrance|[Pp]ursuit|[Ss]tillness|[Ee]rrand|[Gg]uests?|[Kk]eyed|[Ff]orest|[Tt]ender|[Ss]tudio|[Dd]rawer|[Aa]udience|[Rr]oster|[Vv]isit|[Vv]isitor|[Ss]keleton|[Hh]ierarchies|[Ss]trays|[Uu]nheard|[Mm]inted|[Aa]rtefact|[Ll]ives|[Pp]ulse)(?:s|es)?(?:[A-Z_]\w*)?\b/g,
    where: isCode,
  },
  {
    what: "an old type name",
    pattern:
      /\b(?:Place|ObjectPlace|Watchers|Kept\w*|Wanted|Voice|Patience|Holds|Desk|Being|Box|Person)\b/g,
    where: isCode,
  },
];

/** Names of stored tables, columns and folders, and of public fields: they stay for those who have data with them. */
const stored = /^(?:keyed(?:_\w+)?|unkeyed|seat|artefact|skeleton)$/;
const storedWords: Record<string, RegExp> = {
  "src/client/http/failure.ts": /^told$/,
  "src/objects/sandbox/lifecycle/directory-outbox.ts": /^told$/,
  "src/objects/sandbox/migrations.ts": /^told$/,
  "test/unit/client/errors.test.ts": /^told$/,
};

type Hit = { path: string; line: number; what: string; text: string };

export function languageHits(sources: Source[]): Hit[] {
  return sources.filter((source) => isProse(source) && !isTidy(source)).flatMap(hitsIn);
}

function hitsIn(source: Source): Hit[] {
  const { path, text: whole } = source;
  const forms = isDecision(source) ? sentences : [...sentences, ...identifiers];
  return forms
    .filter(({ where }) => where?.(source) ?? true)
    .flatMap(({ what, pattern }) =>
      [...whole.matchAll(pattern)].map((match) => ({
        ...{ path, what, text: match[0].trim() },
        line: whole.slice(0, match.index).split("\n").length,
      })),
    )
    .filter(({ text }) => !stored.test(text) && storedWords[path]?.test(text) !== true);
}

export function languageProblems(sources: Source[]): string[] {
  return languageHits(sources).map(
    ({ path, line, what, text }) => `${path}:${line} has ${what}: ${text}`,
  );
}
