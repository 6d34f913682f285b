-- reads: groups, exceptions
-- One cluster's task groups, earliest first, dependencies by name; `computations` narrows to those '<boot>/<no>'.
WITH mine AS (SELECT * FROM groups WHERE cluster = $cluster),
edges AS (SELECT boot, no, unnest(dependencies) AS dependency FROM mine),
named AS (
    SELECT e.boot, e.no, list(d.name ORDER BY d.no) AS names
    FROM edges e
    JOIN mine d ON d.boot = e.boot AND d.no = e.dependency
    GROUP BY e.boot, e.no
),
-- Dask forgets the state of a failed task with the task; its exception stays.
failed AS (
    SELECT boot, group_no AS no, capped(sum(count)) AS n_tasks_erred
    FROM exceptions
    WHERE cluster = $cluster
    GROUP BY boot, group_no
)
SELECT g.* REPLACE (coalesce(n.names, []) AS dependencies), coalesce(f.n_tasks_erred, 0) AS n_tasks_erred
FROM mine g
LEFT JOIN named n USING (boot, no)
LEFT JOIN failed f USING (boot, no)
WHERE $computations::VARCHAR[] IS NULL OR list_contains($computations::VARCHAR[], g.boot || '/' || g.computation)
ORDER BY g.boot, g.no
