/** A long list of rows of one height, of which only those in sight are in the page. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

type RowsProps<Item> = {
  items: readonly Item[];
  rowPx: number;
  label: string;
  keyOf: (item: Item) => string;
  draw: (item: Item) => ComponentChildren;
  /** Called with what is in sight when that changes. */
  onShown?: (items: readonly Item[]) => void;
};

/** Rows above and below those in sight, so that a quick scroll shows no gap. */
const spareRows = 8;

export function Rows<Item>({ items, rowPx, label, keyOf, draw, onShown }: RowsProps<Item>) {
  const frame = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / rowPx) - spareRows);
  const last = Math.ceil((view.top + view.height) / rowPx) + spareRows;
  const shown = items.slice(first, last);
  const shownKeys = shown.map(keyOf).join();
  useEffect(() => onShown?.(shown), [shownKeys]);
  return (
    <div
      class="rows"
      ref={frame}
      role="table"
      aria-label={label}
      aria-rowcount={items.length}
      tabIndex={0}
    >
      <div role="rowgroup" class="rows-inside" style={{ height: `${items.length * rowPx}px` }}>
        {shown.map((item, index) => (
          <div
            role="row"
            aria-rowindex={first + index + 1}
            class="list-row"
            key={keyOf(item)}
            style={{ top: `${(first + index) * rowPx}px`, height: `${rowPx}px` }}
          >
            {draw(item)}
          </div>
        ))}
      </div>
    </div>
  );
}
