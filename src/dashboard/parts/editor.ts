/** CodeMirror with the language of the file's name and the colours of the page. */
import "./adopted-styles.ts";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { markdown } from "@codemirror/lang-markdown";
import { python } from "@codemirror/lang-python";
import { EditorState, type Extension } from "@codemirror/state";
import { oneDark } from "@codemirror/theme-one-dark";
import { EditorView } from "@codemirror/view";
import { basicSetup } from "codemirror";

export type Editor = { text: () => string; close: () => void };

export type EditorOptions = {
  text: string;
  path: string;
  canEdit: boolean;
  onChange: () => void;
};

const script = (path: string) =>
  javascript({ typescript: /\.[mc]?tsx?$/.test(path), jsx: path.endsWith("x") });

const languages: Record<string, (path: string) => Extension> = {
  js: script,
  jsx: script,
  mjs: script,
  cjs: script,
  ts: script,
  tsx: script,
  json: () => json(),
  md: () => markdown(),
  py: () => python(),
};

export function openEditor(parent: HTMLElement, options: EditorOptions): Editor {
  const { text, path, canEdit, onChange } = options;
  const language = languages[path.split(".").at(-1) ?? ""]?.(path);
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      basicSetup,
      ...(language === undefined ? [] : [language]),
      ...(isDark ? [oneDark] : []),
      EditorState.readOnly.of(!canEdit),
      EditorView.contentAttributes.of({ "aria-label": `Text of ${path}` }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange();
      }),
    ],
  });
  return { text: () => view.state.doc.toString(), close: () => view.destroy() };
}
