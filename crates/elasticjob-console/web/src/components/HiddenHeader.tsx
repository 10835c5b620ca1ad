import { Table, VisuallyHidden } from "@mantine/core";

/** A column header for screen readers only. */
export function HiddenHeader({ label, width }: { label: string; width: number }) {
  return (
    <Table.Th w={width}>
      <VisuallyHidden>{label}</VisuallyHidden>
    </Table.Th>
  );
}
