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

export function languageHits(
  sources: Source[],
): { path: string; line: number; what: string; text: string }[] {
  return sources.filter(isProse).flatMap((source) => {
    if (isTidy(source)) return [];
    const forms = isDecision(source) ? sentences : [...sentences, ...identifiers];
    return forms
      .filter(({ where }) => where?.(source) ?? true)
      .flatMap(({ what, pattern }) =>
        [...source.text.matchAll(pattern)].map((match) => ({
          path: source.path,
          line: source.text.slice(0, match.index).split("\n").length,
          what,
          text: match[0].trim(),
        })),
      );
  });
}
