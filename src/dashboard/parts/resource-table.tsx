/** A table of things with what can be done to each, or what to do first where there are none. */
import type { ComponentChildren } from "preact";

export type ResourceColumn<Row> = [title: string, draw: (row: Row) => ComponentChildren];

type ResourceTableProps<Row> = {
  label: string;
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
  columns: ResourceColumn<Row>[];
  /** Buttons at the end of a row. */
  actions?: ((row: Row) => ComponentChildren) | undefined;
  /** Shown in place of an empty table. */
  empty?: ComponentChildren;
};

export function ResourceTable<Row>(props: ResourceTableProps<Row>) {
  const { label, rows, keyOf, columns, actions, empty } = props;
  if (rows.length === 0) return empty === undefined ? null : <div class="empty">{empty}</div>;
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(([title]) => (
              <th scope="col" key={title}>
                {title}
              </th>
            ))}
            {actions !== undefined && <th scope="col">Do</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(([title, draw]) => (
                <td key={title}>{draw(row)}</td>
              ))}
              {actions !== undefined && (
                <td>
                  <div class="row">{actions(row)}</div>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
