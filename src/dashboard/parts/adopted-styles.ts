/**
 * Terminals and editors write style elements and style attributes, which the page's policy refuses. This gives them the
 * same rules by the ways that it allows: an adopted sheet, and the style object of an element.
 */

const createElement = document.createElement.bind(document);
const setAttribute = Element.prototype.setAttribute;

document.createElement = ((name: string, options?: ElementCreationOptions) =>
  name === "style" ? styleElement() : createElement(name, options)) as Document["createElement"];

Element.prototype.setAttribute = function (name: string, value: string): void {
  if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

function styleElement(): HTMLElement {
  const element = createElement("meta");
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", {
    set: (text: string) => sheet.replaceSync(text),
    get: () => "",
  });
  element.remove = () => {
    Element.prototype.remove.call(element);
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
  };
  return element;
}
