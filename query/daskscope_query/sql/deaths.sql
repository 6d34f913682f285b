-- reads: deaths, logs
-- One cluster's workers that went, latest first, each with the last 10 lines that it and its nanny logged up to 10 s
-- after; `expected` narrows them.
WITH page AS (
    SELECT *
    FROM deaths
    WHERE cluster = $cluster AND ($expected::BOOLEAN IS NULL OR expected = $expected)
    ORDER BY died_at DESC, boot DESC, no DESC
    LIMIT $limit OFFSET $offset
),
lines AS (
    SELECT p.boot, p.no, l.boot AS line_boot, l.no AS line_no, l.logged_at, l.level, l.logger, l.role, l.text, l.dropped
    FROM page p
    JOIN logs l ON l.cluster = p.cluster AND l.worker = p.worker
    WHERE epoch_ms(l.logged_at) <= epoch_ms(p.died_at) + 10_000
    QUALIFY row_number() OVER (PARTITION BY p.boot, p.no ORDER BY l.logged_at DESC, l.boot DESC, l.no DESC) <= 10
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
SELECT page.*, coalesce(told.lines, []) AS lines
FROM page
LEFT JOIN told USING (boot, no)
ORDER BY died_at DESC, boot DESC, no DESC
