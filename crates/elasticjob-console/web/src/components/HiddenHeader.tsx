import { Table, VisuallyHidden } from "@mantine/core";

/** The head of a column that needs no word for those who see. */
export function HiddenHeader({ label, width }: { label: string; width: number }) {
  return (
    <Table.Th w={width}>
      <VisuallyHidden>{label}</VisuallyHidden>
    </Table.Th>
  );
}
