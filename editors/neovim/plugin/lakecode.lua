-- Defines :Lakecode. Everything else is loaded by its first use.
if vim.g.loaded_lakecode then
  return
end
vim.g.loaded_lakecode = true

vim.api.nvim_create_user_command('Lakecode', function(args)
  require('lakecode').command(args.fargs)
end, {
  nargs = '*',
  desc = 'Talk to the Lakecode agent',
  complete = function(lead, line)
    return require('lakecode').complete(lead, line)
  end,
})
