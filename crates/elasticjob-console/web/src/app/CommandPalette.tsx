import { Box, Group, Modal, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useState } from "react";
import { useNavigate } from "react-router";

import { fetchJobs } from "../api/queries";
import { Icon, type IconName } from "../components/Icon";
import { useText } from "../i18n";
import classes from "./CommandPalette.module.css";
import type { NavItem } from "./navItems";

interface Option {
  to: string;
  label: string;
  about: string;
  icon: IconName;
}

/** Finds a page, or a job of the current registry, by name. */
export function CommandPalette({
  registry,
  items,
  onClose,
}: {
  registry: string;
  items: NavItem[];
  onClose: () => void;
}) {
  const t = useText();
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const [search] = useDebouncedValue(text.trim(), 120);
  const jobs = useQuery({
    queryKey: ["palette", registry, search],
    queryFn: () => fetchJobs(registry, { search, pageSize: 8 }),
    enabled: registry !== "",
    retry: false,
    placeholderData: keepPreviousData,
  });

  const word = text.trim().toLowerCase();
  // Until the server has answered for the current text, only jobs whose names match it are offered.
  const isAnswered = search === text.trim() && !jobs.isPlaceholderData;
  const found = (jobs.data?.items ?? []).filter(
    (job) => isAnswered || job.jobName.toLowerCase().includes(word),
  );
  const choices: Option[] = [
    ...items
      .filter((item) => item.label.toLowerCase().includes(word))
      .map((item) => ({
        to: item.to,
        label: item.label,
        about: t.palette.page,
        icon: item.icon,
      })),
    ...found.map((job) => ({
      to: `/r/${encodeURIComponent(registry)}/jobs/${encodeURIComponent(job.jobName)}`,
      label: job.jobName,
      about: job.description || t.palette.job,
      icon: "jobs" as const,
    })),
  ];
  const chosen = Math.min(index, choices.length - 1);

  const go = (choice: Option | undefined) => {
    if (!choice) return;
    onClose();
    void navigate(choice.to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setIndex(Math.min(chosen + 1, choices.length - 1));
    else if (event.key === "ArrowUp") setIndex(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") go(choices[chosen]);
    else return;
    event.preventDefault();
  };

  return (
    <Modal
      opened
      onClose={onClose}
      withCloseButton={false}
      padding={0}
      centered={false}
      aria-label={t.palette.open}
    >
      <TextInput
        data-autofocus
        variant="unstyled"
        size="md"
        px="md"
        placeholder={t.palette.placeholder}
        aria-label={t.palette.placeholder}
        leftSection={<Icon name="search" />}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setIndex(0);
        }}
        onKeyDown={onKeyDown}
        role="combobox"
        aria-expanded="true"
        aria-controls="palette"
        aria-activedescendant={chosen >= 0 ? `palette-${chosen}` : undefined}
      />
      <Box id="palette" role="listbox" aria-label={t.palette.open} className={classes.list}>
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the combobox, which names the active option.
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the combobox's, where the focus is.
          <div
            key={choice.to}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            className={classes.choice}
            onMouseMove={() => setIndex(index)}
            onClick={() => go(choice)}
          >
            <Group gap="sm" wrap="nowrap">
              <Icon name={choice.icon} />
              <Text span size="sm" fw={500}>
                {choice.label}
              </Text>
              <Text span size="xs" c="dimmed" truncate>
                {choice.about}
              </Text>
            </Group>
          </div>
        ))}
      </Box>
      {choices.length === 0 && (
        <Text size="sm" c="dimmed" p="md" ta="center">
          {t.palette.noMatch}
        </Text>
      )}
    </Modal>
  );
}
