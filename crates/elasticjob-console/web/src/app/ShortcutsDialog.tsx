import { Modal, Table } from "@mantine/core";

import { useText } from "../i18n";
import type { NavItem } from "./navItems";

export function ShortcutsDialog({ items, onClose }: { items: NavItem[]; onClose: () => void }) {
  const t = useText();
  const keys: [string[], string][] = [
    [["/"], t.keys.search],
    [["Ctrl", "K"], t.keys.palette],
    [["?"], t.keys.help],
    ...items
      .filter((item) => item.key)
      .map((item): [string[], string] => [["g", item.key ?? ""], item.label]),
  ];
  return (
    <Modal
      opened
      onClose={onClose}
      title={t.keys.title}
      closeButtonProps={{ "aria-label": t.close }}
    >
      <Table>
        <Table.Tbody>
          {keys.map(([parts, label]) => (
            <Table.Tr key={label}>
              <Table.Td w={120}>
                {parts.map((part) => (
                  <kbd className="key" key={part} style={{ marginRight: 4 }}>
                    {part}
                  </kbd>
                ))}
              </Table.Td>
              <Table.Td>{label}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
