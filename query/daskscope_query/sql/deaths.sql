-- reads: deaths, logs, members
-- One cluster's workers that went, latest first, each with the last 10 lines of it and its nanny; `expected` narrows them.
--
-- A process's clock may be off, so lines count by when they came: up to two messages after the one that told of the
-- death, or 10 s after it by the scheduler's clock. Where another worker had the address next, its lines are left out:
-- by their own time if that agrees with the scheduler's clock, else by when they came; and so are those that had come
-- when another one that had it before was gone.
WITH mine AS (
    SELECT *, lag(died_at) OVER (PARTITION BY worker ORDER BY died_at, boot, no) AS former_died_at
    FROM deaths
    WHERE cluster = $cluster
),
page AS (
    SELECT *
    FROM mine
    WHERE $expected::BOOLEAN IS NULL OR expected = $expected
    ORDER BY died_at DESC, boot DESC, no DESC
    LIMIT $limit OFFSET $offset
),
successors AS (
    SELECT p.boot, p.no, min(m.joined_at) AS joined_at
    FROM page p
    JOIN members m ON m.cluster = p.cluster AND m.role = 'worker' AND m.id = p.worker AND m.joined_at > p.died_at
    GROUP BY p.boot, p.no
),
-- Nannies of a LocalCluster log in the scheduler's process; their lines name the worker.
said AS (
    SELECT * FROM logs WHERE cluster = $cluster AND worker IS NOT NULL
    UNION ALL BY NAME
    SELECT
        * REPLACE (
            unnest(list_distinct(regexp_extract_all("text", '[a-z0-9]+://[0-9A-Za-z.:/%_\[\]-]*[0-9A-Za-z]'))) AS worker
        )
    FROM logs
    WHERE cluster = $cluster AND role = 'scheduler' AND starts_with(logger, 'distributed.nanny')
),
lines AS (
    SELECT p.boot, p.no, l.boot AS line_boot, l.no AS line_no, l.logged_at, l.level, l.logger, l.role, l.text, l.dropped
    FROM page p
    JOIN said l ON l.worker = p.worker
    LEFT JOIN successors s ON s.boot = p.boot AND s.no = p.no
    WHERE
        (l.boot < p.boot OR (l.boot = p.boot AND (l.seq <= p.seq + 2 OR epoch_ms(l."at") <= epoch_ms(p.died_at) + 10_000)))
        AND (p.former_died_at IS NULL OR l."at" > p.former_died_at)
        AND CASE
            WHEN s.joined_at IS NULL THEN true
            WHEN abs(epoch_ms(l."at") - epoch_ms(l.logged_at)) < 60_000 THEN l.logged_at < s.joined_at
            ELSE (l.boot, l.seq) <= (p.boot, p.seq) OR l."at" < s.joined_at
        END
    QUALIFY row_number() OVER (PARTITION BY p.boot, p.no ORDER BY l.boot DESC, l.seq DESC, l.logged_at DESC, l.no DESC) <= 10
),
told AS (
    SELECT
        boot,
        no,
        list(
            {logged_at: logged_at, level: level, logger: logger, role: role, text: text, dropped: dropped}
            ORDER BY logged_at, line_boot, line_no
        ) AS lines
    FROM lines
    GROUP BY boot, no
)
SELECT page.* EXCLUDE (former_died_at), coalesce(told.lines, []) AS lines
FROM page
LEFT JOIN told USING (boot, no)
ORDER BY died_at DESC, boot DESC, no DESC
