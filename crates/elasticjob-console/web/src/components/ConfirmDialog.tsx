import { Alert, Button, Group, List, Modal, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { useText } from "../i18n";

/** A red with enough contrast to white text in both schemes. */
export const DANGER = "red.9";

interface Props {
  title: string;
  /** One sentence per consequence. */
  consequences: string[];
  warning?: string;
  button: string;
  /** Text that the user must type before an action that cannot be undone. */
  confirmText?: string;
  isBusy: boolean;
  isDangerous?: boolean;
  children?: ReactNode;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks for confirmation and lists the consequences of the action. */
export function ConfirmDialog(props: Props) {
  const {
    title,
    consequences,
    warning,
    button,
    confirmText,
    isBusy,
    isDangerous = true,
    children,
  } = props;
  const t = useText();
  const [text, setText] = useState("");
  return (
    <Modal
      opened
      onClose={props.onClose}
      title={title}
      closeButtonProps={{ "aria-label": t.close }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          props.onConfirm();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">{t.consequences}</Text>
          <List size="sm" spacing={4}>
            {consequences.map((sentence) => (
              <List.Item key={sentence}>{sentence}</List.Item>
            ))}
          </List>
          {warning && (
            <Alert color="red" variant="light">
              {warning}
            </Alert>
          )}
          {children}
          {confirmText && (
            <TextInput
              label={t.typeToConfirm(confirmText)}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
              autoComplete="off"
              data-autofocus
            />
          )}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={props.onClose}>
              {t.cancel}
            </Button>
            <Button
              type="submit"
              color={isDangerous ? DANGER : undefined}
              loading={isBusy}
              disabled={confirmText !== undefined && text !== confirmText}
              data-autofocus={confirmText === undefined || undefined}
            >
              {button}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
