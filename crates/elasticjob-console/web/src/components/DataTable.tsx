import { Table, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { type CSSProperties, Fragment, type ReactNode, useState } from "react";

import { useText } from "../i18n";
import classes from "./DataTable.module.css";
import { Icon } from "./Icon";
import { ScrollRegion } from "./ScrollRegion";

export interface Column<Row> {
  header: string;
  /** Column of row actions; its header is visible to screen readers only. */
  isActions?: boolean;
  width?: number;
  /** On small screens, where a row is a card: shown in the card's title beside the first column. */
  isTitle?: boolean;
  /** On small screens: takes a full line of the card. */
  isWide?: boolean;
  className?: string;
  cell: (row: Row) => ReactNode;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string | number;
  /** Minimum width (px); in less space the table scrolls. */
  width?: number;
  /** Expandable details below a row. */
  detail?: (row: Row) => ReactNode;
  /** `data-*` attributes by which tests find a row. */
  attributes?: (row: Row) => Record<`data-${string}`, string | number | undefined>;
}

type Key = string | number;

/** A table whose rows become cards on small screens. The ARIA roles are explicit because the card layout removes the implicit ones. */
export function DataTable<Row>(props: Props<Row>) {
  const { label, columns, rows, keyOf, width, detail, attributes } = props;
  const t = useText();
  const [open, setOpen] = useState<Key | null>(null);
  const style = { "--table-width": width && `${width}px` } as CSSProperties;
  return (
    <ScrollRegion label={label}>
      <Table highlightOnHover className={classes.table} style={style} role="table">
        <Table.Thead role="rowgroup">
          <Table.Tr role="row">
            {columns.map(({ header, isActions, width }) => (
              <Table.Th key={header} w={width} role="columnheader">
                {isActions ? <VisuallyHidden>{header}</VisuallyHidden> : header}
              </Table.Th>
            ))}
            {detail && (
              <Table.Th w={40} role="columnheader">
                <VisuallyHidden>{t.audit.details}</VisuallyHidden>
              </Table.Th>
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody role="rowgroup">
          {rows.map((row) => {
            const key = keyOf(row);
            const isOpen = open === key;
            return (
              <Fragment key={key}>
                <Table.Tr role="row" {...attributes?.(row)}>
                  {columns.map(({ header, isActions, isTitle, isWide, className, cell }, index) => (
                    <Table.Td
                      key={header}
                      role="cell"
                      className={className}
                      data-head={index > 0 && !isActions && !isTitle ? header : undefined}
                      data-title={isTitle || undefined}
                      data-actions={isActions || undefined}
                      data-wide={isWide || undefined}
                    >
                      <div>{cell(row)}</div>
                    </Table.Td>
                  ))}
                  {detail && (
                    <Table.Td role="cell" data-actions>
                      <UnstyledButton
                        className={classes.more}
                        aria-expanded={isOpen}
                        aria-label={t.audit.details}
                        onClick={() => setOpen(isOpen ? null : key)}
                      >
                        <Icon name={isOpen ? "down" : "right"} />
                      </UnstyledButton>
                    </Table.Td>
                  )}
                </Table.Tr>
                {detail && isOpen && (
                  <Table.Tr role="row">
                    <Table.Td role="cell" colSpan={columns.length + 1} bg="var(--row)">
                      {detail(row)}
                    </Table.Td>
                  </Table.Tr>
                )}
              </Fragment>
            );
          })}
        </Table.Tbody>
      </Table>
    </ScrollRegion>
  );
}
