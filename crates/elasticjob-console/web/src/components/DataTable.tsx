import { Table, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { type CSSProperties, Fragment, type ReactNode, useState } from "react";

import { useText } from "../i18n";
import classes from "./DataTable.module.css";
import { Icon } from "./Icon";
import { ScrollRegion } from "./ScrollRegion";

export interface Column<Row> {
  header: string;
  /** Those who see need no word for it: what is done to a row. */
  isActions?: boolean;
  width?: number;
  /** Where a row is a card: it stands in the title, beside the first column. */
  isTitle?: boolean;
  /** Where a row is a card: it takes a line of its own. */
  isWide?: boolean;
  className?: string;
  cell: (row: Row) => ReactNode;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string | number;
  /** Where there is less room, it scrolls. */
  width?: number;
  /** What is told below a row when somebody wants to know more. */
  detail?: (row: Row) => ReactNode;
  /** For what finds a row by what it is about. */
  attributes?: (row: Row) => Record<`data-${string}`, string | number | undefined>;
}

type Key = string | number;

/** Rows of things of one kind; on a phone each is a card, its first column the title. The roles are said because there it no longer looks like a table. */
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
